//! How a target is reached: addresses, HTTP version, TLS, proxy.
//!
//! Files of certificates must be there and readable; what is in them is read where connections
//! are made.

use std::path::PathBuf;
use std::time::Duration;

use super::super::diagnostic::Problem;
use super::super::given::{Given, Refusal};
use super::super::keys::{self, Table};
use super::super::reader::{Node, Reader, Section};
use super::super::secret;
use super::super::{
    AddressFamily, Balance, BaseUrl, HttpVersion, NetworkConfig, ProxyConfig, Scheme, TlsConfig,
};
use super::items;
use super::target::{base_url, refused_url, url_at, url_of};

/// Shortest time of reuse; below it `connection: new` says what is meant.
const LEAST_REUSE: Duration = Duration::from_secs(1);
const MOST_REUSE: Duration = Duration::from_hours(24 * 7);

/// The addresses under `url` or `urls`, at least one.
pub(super) fn urls<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Vec<BaseUrl>> {
    match (section.get("url"), section.get("urls")) {
        (Some(_), Some(node)) => {
            let refusal = Refusal::new(Problem::Conflict)
                .wanted("`url` or `urls`, not both")
                .hint("put all of them into `urls`");
            reader.refuse(&node, &refusal);
            None
        }
        (_, None) => {
            reader.require(section, "url");
            Some(vec![url_at(reader, section, "url", base_url)?])
        }
        (None, Some(_)) => {
            let nodes = items(reader, section, "urls")?;
            let mut urls: Vec<BaseUrl> = Vec::new();
            for node in &nodes {
                let Some(url) = list_item(reader, node) else {
                    continue;
                };
                if urls.contains(&url) {
                    let refusal = Refusal::new(Problem::Duplicate).wanted("each URL once");
                    reader.refuse(node, &refusal);
                } else {
                    urls.push(url);
                }
            }
            (urls.len() == nodes.len()).then_some(urls)
        }
    }
}

fn list_item<'a>(reader: &mut Reader<'a>, node: &Node<'a>) -> Option<BaseUrl> {
    let Some(text) = node.value.as_str() else {
        let refusal = Refusal::new(Problem::WrongType).wanted(keys::TARGET.wanted("url"));
        reader.refuse(node, &refusal);
        return None;
    };
    url_of(reader, node, (text, base_url))
}

/// How an arrival picks one of several addresses.
pub(super) fn balance<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Balance {
    let balance = reader.optional(section, "balance", |given| {
        let known = [
            ("round_robin", Balance::RoundRobin),
            ("random", Balance::Random),
            ("least_in_flight", Balance::LeastInFlight),
        ];
        given.word(&known, &["hash", "weighted"])
    });
    balance.unwrap_or_default()
}

/// Reads the keys about the network. `urls` are the addresses, where they could be read.
pub(super) fn network<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    urls: Option<&[BaseUrl]>,
) -> NetworkConfig {
    let http = reader.optional(section, "http", http);
    let family = reader.optional(section, "address_family", |given| {
        let known = [
            ("any", AddressFamily::Any),
            ("ipv4", AddressFamily::Ipv4),
            ("ipv6", AddressFamily::Ipv6),
        ];
        given.word(&known, &[])
    });
    let reuse_for = reader.optional(section, "reuse_for", |given| {
        given.duration(LEAST_REUSE..=MOST_REUSE)
    });
    let has = |scheme| urls.is_none_or(|urls| urls.iter().any(|url| url.scheme() == scheme));
    if !has(Scheme::Https)
        && let Some(node) = section.get("tls")
    {
        let refusal = Refusal::new(Problem::Conflict)
            .wanted("a URL that begins with `https://`")
            .hint("without it nothing is encrypted");
        reader.refuse(&node, &refusal);
    }
    if urls.is_some()
        && has(Scheme::Unix)
        && let Some(node) = section.get("proxy")
    {
        let refusal = Refusal::new(Problem::Conflict)
            .hint("a Unix socket is on this machine: no proxy leads to it");
        reader.refuse(&node, &refusal);
    }
    NetworkConfig {
        http: http.unwrap_or_default(),
        tls: tls(reader, section, &keys::TLS).unwrap_or_default(),
        proxy: proxy(reader, section),
        family: family.unwrap_or_default(),
        reuse_for,
    }
}

/// A version of HTTP, as a number or a text.
fn http(given: Given<'_>) -> Result<HttpVersion, Refusal> {
    let text = given
        .scalar()
        .ok_or_else(|| Refusal::new(Problem::WrongType))?;
    match text.as_str() {
        "1.1" => Ok(HttpVersion::Http1),
        "2" => Ok(HttpVersion::Http2),
        "auto" => Ok(HttpVersion::Auto),
        "3" => Err(Refusal::new(Problem::NotAvailable)),
        _ => Err(Refusal::new(Problem::NotUnderstood)),
    }
}

/// Trust and identity, by the keys of `table`.
pub(super) fn tls<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    table: &'static Table,
) -> Option<TlsConfig> {
    let section = reader.subsection(section, "tls", table)?;
    let tls = TlsConfig {
        ca: file(reader, &section, "ca"),
        cert: file(reader, &section, "cert"),
        key: file(reader, &section, "key"),
        server_name: reader.optional(&section, "server_name", server_name),
    };
    for (one, other) in [("cert", "key"), ("key", "cert")] {
        if section.get(one).is_some() {
            reader.require(&section, other);
        }
    }
    Some(tls)
}

/// The path of a file that can be read.
pub(super) fn file<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    key: &str,
) -> Option<PathBuf> {
    reader.optional(section, key, |given| {
        let path = given.text()?;
        match secret::unreadable(path) {
            Some(refusal) => Err(refusal),
            None => Ok(PathBuf::from(path)),
        }
    })
}

/// A host name or an IP address.
fn server_name(given: Given<'_>) -> Result<String, Refusal> {
    /// Longest name DNS knows.
    const LONGEST: usize = 253;
    let text = given.text()?;
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if (1..=LONGEST).contains(&text.len()) && text.bytes().all(good) {
        Ok(text.to_owned())
    } else {
        Err(Refusal::new(Problem::NotUnderstood))
    }
}

/// A proxy: its URL, or a section with that and a secret.
fn proxy<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<ProxyConfig> {
    let node = section.get("proxy")?;
    if node.value.as_dict().is_none() {
        let url = url_at(reader, section, "proxy", proxy_url)?;
        return Some(ProxyConfig {
            url,
            authorization: None,
        });
    }
    let section = reader.section(node, &keys::PROXY)?;
    reader.require(&section, "url");
    let url = url_at(reader, &section, "url", proxy_url);
    let authorization = secret::secret(reader, &section, "authorization");
    Some(ProxyConfig {
        url: url?,
        authorization,
    })
}

fn proxy_url(text: &str) -> Result<BaseUrl, Refusal> {
    const EXAMPLE: &str = "http://proxy:3128";
    let url = BaseUrl::parse(text).map_err(|error| refused_url(&error, EXAMPLE))?;
    if url.scheme() == Scheme::Http && url.prefix().is_empty() {
        Ok(url)
    } else {
        Err(Refusal::new(Problem::NotUnderstood)
            .wanted(format!("a URL, as in `{EXAMPLE}`"))
            .hint("a proxy is asked in plain HTTP, and has no path"))
    }
}
