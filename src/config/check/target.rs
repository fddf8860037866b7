//! The targets: where requests go.

use std::time::Duration;

use figment::value::Value;

use super::super::diagnostic::Problem;
use super::super::given::{Given, Refusal};
use super::super::keys;
use super::super::reader::{Node, Reader, Section};
use super::super::secret;
use super::super::{
    BaseUrl, NodeSource, Scheme, ServerMetrics, StartConfig, TargetConfig, UrlError,
};
use super::gpu::gpu;
use super::network::{balance, network, urls};
use super::pod::pod_info;
use super::request::{request, tokenizer};
use super::{HOUR, check_unique, items, name};
use crate::measurement::Api;

/// The default of `server_metrics_every`.
const EVERY: Duration = Duration::from_secs(5);
/// The default of `node_every`: what a host counts changes slowly, and its page is long.
const NODE_EVERY: Duration = Duration::from_secs(15);
/// A page read more often than this would be load of its own.
const FASTEST: Duration = Duration::from_millis(100);
/// Most requests after a start that may count for nobody.
const MOST_WARM_UP: u64 = 1_000;
/// Protocols that are planned.
const LATER_APIS: &[&str] = &[
    "realtime",
    "generate",
    "image_generation",
    "image_edit",
    "image_retrieval",
    "video_generation",
    "audio_transcription",
    "solido_rag",
];

/// Reads `targets`; `None` if any is wrong.
pub(super) fn targets<'a>(reader: &mut Reader<'a>, top: &Section<'a>) -> Option<Vec<TargetConfig>> {
    let sections: Vec<_> = items(reader, top, "targets")?
        .into_iter()
        .map(|node| reader.section(node, &keys::TARGET))
        .collect();
    let read: Vec<Option<TargetConfig>> = sections
        .iter()
        .map(|section| target(reader, section.as_ref()?))
        .collect();
    let sections: Vec<Section<'a>> = sections.into_iter().flatten().collect();
    check_unique(reader, &sections);
    read.into_iter().collect()
}

fn target<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<TargetConfig> {
    let name = reader.required(section, "name", name);
    let urls = urls(reader, section);
    let balance = balance(reader, section);
    let network = network(reader, section, urls.as_deref());
    let api = match section.get("api") {
        None => Some(Api::Chat),
        Some(_) => reader.optional(section, "api", api),
    };
    let request = api.and_then(|api| request(reader, section, api));
    let tokenizer = tokenizer(reader, section);
    let model = reader.optional(section, "model", model);
    let api_key = secret::secret(reader, section, "api_key");
    let headers = secret::headers(reader, section);
    if let Some(api) = api {
        check_key_header(reader, section, api);
        require_model(reader, section, api);
    }
    let server_metrics = server_metrics(reader, section);
    let every = reader.optional(section, "server_metrics_every", |given| {
        given.duration(FASTEST..=HOUR)
    });
    let gpu = match section.get("gpu") {
        None => Some(None),
        Some(_) => gpu(reader, section).map(Some),
    };
    let node = url_at(reader, section, "node", node_source);
    let node_every = reader.optional(section, "node_every", |given| {
        given.duration(FASTEST..=HOUR)
    });
    let pod_info = pod_info(reader, section);
    let start = start(reader, section);
    Some(TargetConfig {
        name: name?,
        urls: urls?,
        balance,
        network,
        api: api?,
        request: request?,
        tokenizer,
        model,
        api_key,
        headers,
        server_metrics: server_metrics.unwrap_or(ServerMetrics::Auto),
        server_metrics_every: every.unwrap_or(EVERY),
        gpu: gpu?,
        node,
        node_every: node_every.unwrap_or(NODE_EVERY),
        pod_info,
        start,
    })
}

/// What a start of the server may take.
fn start<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> StartConfig {
    let usual = StartConfig::default();
    let grace = reader.optional(section, "startup_grace", |given| {
        given.duration(Duration::ZERO..=HOUR)
    });
    let warm_up = reader.optional(section, "warm_up", |given| given.whole(0..=MOST_WARM_UP));
    StartConfig {
        grace: grace.unwrap_or(usual.grace),
        warm_up: warm_up.map_or(usual.warm_up, |count| {
            u32::try_from(count).unwrap_or(u32::MAX)
        }),
    }
}

/// The URL under `key`, read by `parse`. One that may hold a password or a token is not shown.
pub(super) fn url_at<'a, T>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    key: &str,
    parse: impl FnOnce(&str) -> Result<T, Refusal>,
) -> Option<T> {
    let node = section.get(key)?;
    let text = reader.optional(section, key, |given| given.text())?;
    url_of(reader, &node, (text, parse))
}

/// The URL `text` of `node`, read by `parse`, as [`url_at`].
pub(super) fn url_of<'a, T>(
    reader: &mut Reader<'a>,
    node: &Node<'a>,
    (text, parse): (&str, impl FnOnce(&str) -> Result<T, Refusal>),
) -> Option<T> {
    match parse(text) {
        Ok(value) => Some(value),
        Err(refusal) if text.contains(['@', '?']) => {
            reader.refuse_secret(node, &refusal);
            None
        }
        Err(refusal) => {
            reader.refuse(node, &refusal);
            None
        }
    }
}

/// The address of a server.
pub(super) fn base_url(text: &str) -> Result<BaseUrl, Refusal> {
    BaseUrl::parse(text).map_err(|error| refused_url(&error, "http://127.0.0.1:8000"))
}

/// What is wrong with a URL that should look like `example`.
pub(super) fn refused_url(error: &UrlError, example: &str) -> Refusal {
    Refusal::new(Problem::NotUnderstood)
        .wanted(format!("a URL, as in `{example}`"))
        .hint(error.to_string())
}

/// Programs that write the file by the older YAML, where `off` is a truth value, make `false`
/// of it.
fn server_metrics<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<ServerMetrics> {
    let node = section.get("server_metrics")?;
    match node.value {
        Value::Bool(_, false) => Some(ServerMetrics::Off),
        Value::Bool(_, true) => {
            let refusal = Refusal::new(Problem::WrongType).hint("write `auto`");
            reader.refuse(
                &node,
                &refusal.wanted(keys::TARGET.wanted("server_metrics")),
            );
            None
        }
        _ => url_at(reader, section, "server_metrics", metrics_page),
    }
}

fn node_source(text: &str) -> Result<NodeSource, Refusal> {
    if text == "this" {
        return Ok(NodeSource::This);
    }
    if !text.contains("://") {
        return Err(Refusal::new(Problem::NotUnderstood).wanted(keys::TARGET.wanted("node")));
    }
    let without_query = text.split('?').next().unwrap_or_default();
    page_url(without_query, "http://node-7:9100/metrics")?;
    Ok(NodeSource::Page(text.to_owned()))
}

fn metrics_page(text: &str) -> Result<ServerMetrics, Refusal> {
    match text {
        "auto" => Ok(ServerMetrics::Auto),
        "off" => Ok(ServerMetrics::Off),
        _ if text.contains("://") => {
            let without_query = text.split('?').next().unwrap_or_default();
            page_url(without_query, "http://127.0.0.1:8000/metrics")?;
            Ok(ServerMetrics::Url(text.to_owned()))
        }
        _ => {
            Err(Refusal::new(Problem::NotUnderstood).wanted(keys::TARGET.wanted("server_metrics")))
        }
    }
}

fn model(given: Given<'_>) -> Result<String, Refusal> {
    /// Names of models are label values; longer ones are slips.
    const LONGEST: usize = 256;
    let text = given.text()?;
    if text.is_empty() || text.len() > LONGEST || text.chars().any(char::is_control) {
        return Err(Refusal::new(Problem::NotUnderstood)
            .hint("leave the key out to take the only model the server offers"));
    }
    Ok(text.to_owned())
}

/// Whether `text` is the URL of a page, which has a path: so it is no Unix socket.
pub(super) fn page_url(text: &str, example: &str) -> Result<(), Refusal> {
    let url = BaseUrl::parse(text).map_err(|error| refused_url(&error, example))?;
    if url.scheme() == Scheme::Unix {
        return Err(Refusal::new(Problem::NotUnderstood)
            .wanted(format!("a URL, as in `{example}`"))
            .hint("a page is read over `http` or `https`"));
    }
    Ok(())
}

/// A protocol by its own name, or by the one that `AIPerf` uses.
fn api(given: Given<'_>) -> Result<Api, Refusal> {
    if let Some(api) = Api::named(given.text()?) {
        return Ok(api);
    }
    let known = Api::ALL.map(|api| (api.name(), api));
    given.word(&known, LATER_APIS).map_err(|refusal| {
        if refusal.hint.is_some() || refusal.problem == Problem::NotAvailable {
            return refusal;
        }
        let names = Api::ALL.map(|api| format!("`{}`", api.name()));
        refusal.hint(format!("there are {}", names.join(", ")))
    })
}

/// `api_key` is sent as a header, so that cannot be given too.
fn check_key_header<'a>(reader: &mut Reader<'a>, section: &Section<'a>, api: Api) {
    let (Some(_), Some(mut node)) = (section.get("api_key"), section.get("headers")) else {
        return;
    };
    let given = node.value.as_dict().into_iter().flatten();
    if let Some((name, value)) = given
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(api.key_header()))
    {
        node.path = format!("{}.{name}", node.path);
        node.value = value;
        let refusal = Refusal::new(Problem::Conflict).hint("`api_key` sets this header");
        reader.refuse_secret(&node, &refusal);
    }
}

/// A model that is part of the path must be known before anything is sent.
fn require_model<'a>(reader: &mut Reader<'a>, section: &Section<'a>, api: Api) {
    let request = section.get("request");
    let path = request.and_then(|request| request.value.as_dict()?.get("path"));
    if api.names_model_in_path() && path.is_none() {
        reader.require(section, "model");
    }
}
