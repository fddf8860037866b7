//! The targets: where requests go.

use std::time::Duration;

use super::super::diagnostic::Problem;
use super::super::given::{Given, Refusal};
use super::super::keys;
use super::super::reader::{Reader, Section};
use super::super::secret;
use super::super::{
    Balance, BaseUrl, NetworkConfig, RequestConfig, ServerMetrics, TargetConfig, UrlError,
};
use super::{HOUR, check_unique, items, name};
use crate::measurement::Api;

/// The default of `server_metrics_every`.
const EVERY: Duration = Duration::from_secs(5);
/// A page read more often than this would be load of its own.
const FASTEST: Duration = Duration::from_millis(100);
/// Protocols that are planned.
const LATER_APIS: &[&str] = &[
    "completions",
    "responses",
    "messages",
    "generate",
    "tgi",
    "triton",
    "ollama",
    "embeddings",
    "rerank",
    "realtime",
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
    reader.require(section, "url");
    let url = url_at(reader, section, "url", base_url);
    let api = reader.optional(section, "api", |given| {
        given.word(&[("chat", Api::Chat)], LATER_APIS)
    });
    let model = reader.optional(section, "model", model);
    let api_key = secret::secret(reader, section, "api_key");
    let headers = secret::headers(reader, section);
    if section.get("api_key").is_some() {
        check_authorization(reader, section);
    }
    let server_metrics = url_at(reader, section, "server_metrics", server_metrics);
    let every = reader.optional(section, "server_metrics_every", |given| {
        given.duration(FASTEST..=HOUR)
    });
    Some(TargetConfig {
        name: name?,
        urls: vec![url?],
        balance: Balance::default(),
        network: NetworkConfig::default(),
        api: api.unwrap_or(Api::Chat),
        request: RequestConfig::default(),
        tokenizer: None,
        model,
        api_key,
        headers,
        server_metrics: server_metrics.unwrap_or(ServerMetrics::Auto),
        server_metrics_every: every.unwrap_or(EVERY),
    })
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
    match parse(text) {
        Ok(value) => Some(value),
        Err(refusal) if text.contains(['@', '?']) => {
            reader.refuse_secret(&node, &refusal);
            None
        }
        Err(refusal) => {
            reader.refuse(&node, &refusal);
            None
        }
    }
}

fn base_url(text: &str) -> Result<BaseUrl, Refusal> {
    BaseUrl::parse(text).map_err(|error| refused_url(&error, "http://127.0.0.1:8000"))
}

/// What is wrong with a URL that should look like `example`.
pub(super) fn refused_url(error: &UrlError, example: &str) -> Refusal {
    Refusal::new(Problem::NotUnderstood)
        .wanted(format!("a URL, as in `{example}`"))
        .hint(error.to_string())
}

fn server_metrics(text: &str) -> Result<ServerMetrics, Refusal> {
    match text {
        "auto" => Ok(ServerMetrics::Auto),
        "off" => Ok(ServerMetrics::Off),
        _ if text.contains("://") => {
            let without_query = text.split('?').next().unwrap_or_default();
            BaseUrl::parse(without_query)
                .map(|_| ServerMetrics::Url(text.to_owned()))
                .map_err(|error| refused_url(&error, "http://127.0.0.1:8000/metrics"))
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

/// `api_key` is sent as the header `authorization`, so that cannot be given too.
fn check_authorization<'a>(reader: &mut Reader<'a>, section: &Section<'a>) {
    let Some(mut node) = section.get("headers") else {
        return;
    };
    let given = node.value.as_dict().into_iter().flatten();
    if let Some((name, value)) = given
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    {
        node.path = format!("{}.{name}", node.path);
        node.value = value;
        let refusal = Refusal::new(Problem::Conflict).hint("`api_key` sets this header");
        reader.refuse_secret(&node, &refusal);
    }
}
