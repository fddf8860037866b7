//! Clients for what is asked beside the measured requests: a target's pages and lists.
//!
//! They go the way of the measured requests, so that a target behind a proxy, an own CA or a
//! Unix socket is reached. A page elsewhere is trusted likewise, and shown nothing of ours.

use std::time::Duration;

use anyhow::Context;

use crate::clock::TimeAnchor;
use crate::config::{BaseUrl, NetworkConfig, Scheme, TargetConfig, TlsConfig};
use crate::transport::Endpoint;
use crate::transport::fetch::{Fetch, FetchTimeouts};

/// A page must come within this time.
pub(super) const ASIDE: Duration = Duration::from_secs(5);

/// What a page is read with, and its URL.
pub(super) struct Page {
    pub(super) fetch: Fetch,
    pub(super) url: String,
}

/// The page at `path` of the address `url` of `target`.
pub(super) fn page_at(
    target: &TargetConfig,
    (url, path): (&BaseUrl, &str),
    anchor: TimeAnchor,
) -> anyhow::Result<Page> {
    let whole = match url.scheme() {
        // All that is asked of it goes to the socket, whatever the host.
        Scheme::Unix => format!("http://localhost{path}"),
        Scheme::Http | Scheme::Https => format!("{url}{path}"),
    };
    Ok(Page {
        fetch: fetch(url.clone(), target.network.clone(), anchor)?,
        url: whole,
    })
}

/// The page at `url`, of `target` or of another host.
pub(super) fn page_elsewhere(
    target: &TargetConfig,
    url: &str,
    anchor: TimeAnchor,
) -> anyhow::Result<Page> {
    let without_query = url.split('?').next().unwrap_or_default();
    let base = BaseUrl::parse(without_query).with_context(|| format!("`{url}`"))?;
    let network = NetworkConfig {
        tls: TlsConfig {
            ca: target.network.tls.ca.clone(),
            ..TlsConfig::default()
        },
        family: target.network.family,
        ..NetworkConfig::default()
    };
    Ok(Page {
        fetch: fetch(base, network, anchor)?,
        url: url.to_owned(),
    })
}

fn fetch(url: BaseUrl, network: NetworkConfig, anchor: TimeAnchor) -> anyhow::Result<Fetch> {
    let timeouts = FetchTimeouts {
        connect: ASIDE,
        total: ASIDE,
    };
    Ok(Fetch::beside(
        &Endpoint::new(url, network)?,
        anchor,
        timeouts,
    )?)
}
