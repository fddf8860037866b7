//! The streams of a configuration: each probe against each address of each of its targets, for
//! each cache mode that there are requests of.

use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;

use anyhow::Context;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::client::{Client, ClientSetup, Protocol};
use crate::clock::TimeAnchor;
use crate::config::{BaseUrl, Config, ProbeConfig, RequestConfig, TargetConfig, TlsConfig};
use crate::measurement::{CacheMode, LengthMode, Stream, StreamId};
use crate::transport::{Connect, Endpoint, EndpointError};

/// What the operator wrote about a target cannot be used, as it turned out when its parts were
/// made: a file that is no certificate, a template that makes no JSON.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {what}\n  wanted: {wanted}", self.path())]
pub struct UnusableTarget {
    /// Position of the target.
    pub(super) index: usize,
    pub(super) key: &'static str,
    pub(super) what: String,
    pub(super) wanted: &'static str,
}

impl UnusableTarget {
    /// Where in the configuration, as in `targets[0].tls.ca`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("targets[{}].{}", self.index, self.key)
    }
}

/// One stream with what its probe and its target say about it.
pub(super) struct StreamPlan<'c> {
    pub(super) stream: Arc<Stream>,
    pub(super) probe: &'c ProbeConfig,
    pub(super) target: &'c TargetConfig,
    /// Its address, one of the target's.
    pub(super) url: &'c BaseUrl,
}

/// The streams of a configuration. Those of one probe and one target follow each other, in the
/// order of the target's addresses; of each address the cold one comes before the warm one.
pub(super) fn streams(config: &Config) -> anyhow::Result<Vec<StreamPlan<'_>>> {
    let mut plans: Vec<StreamPlan<'_>> = Vec::new();
    for probe in &config.probes {
        for name in &probe.targets {
            let (target_index, target) = config
                .targets
                .iter()
                .enumerate()
                .find(|(_, target)| target.name == *name)
                .with_context(|| format!("probe `{}` names no target `{name}`", probe.name))?;
            let modes = probe.workload.cache.all();
            let urls = target.urls.iter();
            for (url, cache) in urls.flat_map(|url| modes.iter().map(move |mode| (url, *mode))) {
                let id = u16::try_from(plans.len()).context("more than 65536 streams")?;
                let at = (StreamId(id), target_index);
                plans.push(StreamPlan {
                    stream: Arc::new(stream(at, (probe, target), (url, cache))),
                    probe,
                    target,
                    url,
                });
            }
        }
    }
    Ok(plans)
}

fn stream(
    (id, target_index): (StreamId, usize),
    (probe, target): (&ProbeConfig, &TargetConfig),
    (url, cache): (&BaseUrl, CacheMode),
) -> Stream {
    let model = target.model.as_deref().map(Box::from);
    Stream {
        id,
        target_index,
        target: target.name.as_str().into(),
        endpoint: url.to_string().into(),
        probe: probe.name.as_str().into(),
        api: target.api,
        cache,
        connection: probe.connection,
        length: if target.api.takes_exact_length() && asks_exact_length(probe, target) {
            LengthMode::Exact
        } else {
            LengthMode::Advisory
        },
        streaming: probe.streaming && target.api.can_stream(),
        closed_loop: probe.is_closed_loop(),
        model: model.map_or_else(Default::default, Into::into),
    }
}

/// Whether answers are asked to be exactly so long. Who has been asked a question stops when it
/// is answered.
fn asks_exact_length(probe: &ProbeConfig, target: &TargetConfig) -> bool {
    target.request.exact_length && !probe.workload.knows_answers()
}

/// The plans of each probe and target: those that share a schedule.
pub(super) fn loops<'p, 'c>(
    plans: &'p [StreamPlan<'c>],
) -> impl Iterator<Item = &'p [StreamPlan<'c>]> {
    plans
        .chunk_by(|one, other| ptr::eq(one.probe, other.probe) && ptr::eq(one.target, other.target))
}

impl StreamPlan<'_> {
    /// The client that sends its requests.
    pub(super) fn client(
        &self,
        connect: Arc<dyn Connect>,
        anchor: TimeAnchor,
    ) -> anyhow::Result<Client> {
        let Self { target, url, .. } = self;
        let unusable = |key, what: String, wanted| UnusableTarget {
            index: self.stream.target_index,
            key,
            what,
            wanted,
        };
        let endpoint = Endpoint::new((*url).clone(), target.network.clone()).map_err(|error| {
            unusable(
                tls_key(&error, &target.network.tls),
                error.to_string(),
                "PEM files of certificates and of a key",
            )
        })?;
        let request = RequestConfig {
            exact_length: asks_exact_length(self.probe, target),
            ..target.request.clone()
        };
        let protocol = Protocol::new(target.api, request).map_err(|error| {
            let wanted = "a `body` that can be sent, and a `text` that is a JSON path";
            unusable("request.body", error.to_string(), wanted)
        })?;
        let client = Client::new(ClientSetup {
            endpoint,
            protocol,
            headers: headers(target)?,
            limits: self.probe.limits,
            connect,
            anchor,
        })
        .with_context(|| format!("URL `{url}` of target `{}`", target.name))?;
        Ok(match target.tokenizer {
            Some(_) => client.keeping_text(),
            None => client,
        })
    }
}

/// The key of `tls` that `error` is about.
fn tls_key(error: &EndpointError, tls: &TlsConfig) -> &'static str {
    let is = |file: &Option<PathBuf>, path: &str| {
        file.as_ref()
            .is_some_and(|file| file.display().to_string() == path)
    };
    match error {
        EndpointError::File { path, .. } if is(&tls.ca, path) => "tls.ca",
        EndpointError::File { path, .. } if is(&tls.cert, path) => "tls.cert",
        EndpointError::File { path, .. } if is(&tls.key, path) => "tls.key",
        EndpointError::Name(_) if tls.server_name.is_some() => "tls.server_name",
        EndpointError::Name(_) => "url",
        EndpointError::NoRoots => "tls.ca",
        EndpointError::File { .. } | EndpointError::Identity(_) => "tls",
    }
}

/// Headers of every request to `target`.
pub(super) fn headers(target: &TargetConfig) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in &target.headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .with_context(|| format!("header `{name}` of target `{}`", target.name))?;
        let mut value = HeaderValue::from_str(value.reveal())
            .with_context(|| format!("value of header `{name}` of target `{}`", target.name))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    if let Some(key) = &target.api_key {
        let name = HeaderName::from_static(target.api.key_header());
        let value = if name == hyper::header::AUTHORIZATION {
            HeaderValue::from_str(&format!("Bearer {}", key.reveal()))
        } else {
            HeaderValue::from_str(key.reveal())
        };
        let mut value = value.with_context(|| format!("`api_key` of target `{}`", target.name))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}
