//! OTLP: where each signal goes, how, and what is sent.
//!
//! A key of one signal's own section goes before that of the whole; headers are merged.

use std::path::Path;
use std::time::Duration;

use super::super::diagnostic::Problem;
use super::super::given::{Given, Refusal};
use super::super::keys::{self, Table};
use super::super::reader::{Reader, Section};
use super::super::{
    BaseUrl, Compression, Conventions, HistogramForm, OtlpConfig, OtlpProtocol, OtlpReceiver,
    Scheme, Secret, TailRules, Temporality, TlsConfig, TraceSampling,
};
use super::super::{host, otel, secret};
use super::network;
use super::target::{page_url, url_at};

/// Spans that are held for a receiver.
const QUEUE: u64 = 2_048;
const MOST_QUEUE: u64 = 1_000_000;
/// One try: the default of OTLP exporters.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Between two exports of metrics.
const EVERY: Duration = Duration::from_secs(10);
const LEAST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_hours(1);

/// One signal, as the configuration knows it.
struct Signal {
    name: &'static str,
    /// The key of its whole URL.
    endpoint: &'static str,
    /// What is appended to a base URL.
    path: &'static str,
    table: &'static Table,
}

const TRACES: Signal = Signal {
    name: "traces",
    endpoint: "traces_endpoint",
    path: "/v1/traces",
    table: &keys::OTLP_TRACES,
};
const METRICS: Signal = Signal {
    name: "metrics",
    endpoint: "metrics_endpoint",
    path: "/v1/metrics",
    table: &keys::OTLP_METRICS,
};
const LOGS: Signal = Signal {
    name: "logs",
    endpoint: "logs_endpoint",
    path: "/v1/logs",
    table: &keys::OTLP_LOGS,
};

/// What the whole section says about all receivers.
#[derive(Clone)]
struct Common {
    base: Option<String>,
    signals: Vec<&'static str>,
    ways: Ways,
}

/// How a receiver is spoken to, as far as it was said.
#[derive(Clone)]
struct Ways {
    protocol: Option<OtlpProtocol>,
    headers: Vec<(String, Secret)>,
    compression: Option<Compression>,
    timeout: Option<Duration>,
    tls: Option<TlsConfig>,
}

/// Reads `export.otlp`; `None` if it is wrong, or switched off for all programs.
pub(super) fn otlp<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<OtlpConfig> {
    let ways = ways(reader, section);
    let protocol = ways.protocol;
    let common = Common {
        base: url_at(reader, section, "endpoint", |text| {
            page_url(text, "http://127.0.0.1:4318")?;
            no_path_in_grpc(protocol, text)?;
            Ok(text.trim_end_matches('/').to_owned())
        }),
        signals: signals(reader, section),
        ways,
    };
    let all = [&TRACES, &METRICS, &LOGS];
    let named = all
        .iter()
        .any(|signal| section.get(signal.endpoint).is_some());
    if !named {
        reader.require(section, "endpoint");
    }
    let [traces, metrics, logs] =
        all.map(|signal| receiver(reader, section, (signal, common.clone())));
    check_tls(reader, section, [&traces, &metrics, &logs]);
    let config = OtlpConfig {
        traces,
        metrics,
        logs,
        queue: queue(reader, section),
        every: reader
            .optional(section, "every", |given| given.duration(LEAST..=MOST))
            .unwrap_or(EVERY),
        temporality: temporality(reader, section),
        histograms: histograms(reader, section),
        conventions: conventions(reader, section),
        sampling: sampling(reader, section).unwrap_or_default(),
        resource: resource(reader, section),
    };
    (!otel::is_disabled(reader.environment)).then_some(config)
}

fn queue<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> usize {
    let queue = reader.optional(section, "queue", |given| given.whole(1..=MOST_QUEUE));
    usize::try_from(queue.unwrap_or(QUEUE)).unwrap_or(usize::MAX)
}

/// The names of the signals that are sent to the base URL.
fn signals<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Vec<&'static str> {
    let known = [TRACES.name, METRICS.name, LOGS.name];
    let Some(nodes) = reader.list(section, "signals") else {
        return known.to_vec();
    };
    let words = known.map(|name| (name, name));
    nodes
        .iter()
        .filter_map(|node| {
            reader.item(section, (node, "signals"), |given| {
                given.word(&words, &["profiles"])
            })
        })
        .collect()
}

fn ways<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Ways {
    Ways {
        protocol: reader.optional(section, "protocol", |given| {
            let known = [
                ("http/protobuf", OtlpProtocol::HttpProtobuf),
                ("http/json", OtlpProtocol::HttpJson),
                ("grpc", OtlpProtocol::Grpc),
            ];
            given.word(&known, &[])
        }),
        headers: secret::headers(reader, section),
        compression: reader.optional(section, "compression", |given| {
            let known = [("none", Compression::None), ("gzip", Compression::Gzip)];
            given.word(&known, &["zstd"])
        }),
        timeout: reader.optional(section, "timeout", |given| given.duration(LEAST..=MOST)),
        tls: network::tls(reader, section, &keys::OTLP_TLS),
    }
}

/// The receiver of `signal`; `None` if it is not sent, or wrong.
fn receiver<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    (signal, common): (&Signal, Common),
) -> Option<OtlpReceiver> {
    let own = reader
        .subsection(section, signal.name, signal.table)
        .map(|section| ways(reader, &section));
    let ways = match own {
        Some(own) => own.over(common.ways),
        None => common.ways,
    };
    let protocol = ways.protocol.unwrap_or_default();
    let whole = url_at(reader, section, signal.endpoint, |text| {
        page_url(text, &format!("http://127.0.0.1:4318{}", signal.path))?;
        no_path_in_grpc(Some(protocol), text)?;
        Ok(text.to_owned())
    });
    let url = match (whole, section.get(signal.endpoint)) {
        (Some(url), _) => url,
        (None, Some(_)) => return None,
        (None, None) if !common.signals.contains(&signal.name) => return None,
        (None, None) => match protocol {
            OtlpProtocol::Grpc => common.base?,
            OtlpProtocol::HttpProtobuf | OtlpProtocol::HttpJson => {
                format!("{}{}", common.base?, signal.path)
            }
        },
    };
    Some(OtlpReceiver {
        url,
        protocol,
        headers: ways.headers,
        compression: ways.compression.unwrap_or_default(),
        timeout: ways.timeout.unwrap_or(TIMEOUT),
        tls: ways.tls.unwrap_or_default(),
    })
}

impl Ways {
    /// These, and where they say nothing `other`.
    fn over(self, other: Self) -> Self {
        let mut headers = other.headers;
        headers.retain(|(name, _)| {
            let own = |(own, _): &(String, Secret)| own.eq_ignore_ascii_case(name);
            !self.headers.iter().any(own)
        });
        headers.extend(self.headers);
        Self {
            protocol: self.protocol.or(other.protocol),
            headers,
            compression: self.compression.or(other.compression),
            timeout: self.timeout.or(other.timeout),
            tls: self.tls.or(other.tls),
        }
    }
}

fn no_path_in_grpc(protocol: Option<OtlpProtocol>, url: &str) -> Result<(), Refusal> {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let has_path = rest.trim_end_matches('/').contains('/');
    if protocol == Some(OtlpProtocol::Grpc) && has_path {
        return Err(Refusal::new(Problem::NotUnderstood)
            .wanted("scheme, host and port, as in `http://127.0.0.1:4317`")
            .hint("gRPC knows no paths"));
    }
    Ok(())
}

/// Whoever writes down what is to be trusted wants TLS.
fn check_tls<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    receivers: [&Option<OtlpReceiver>; 3],
) {
    let secure = |receiver: &&OtlpReceiver| {
        BaseUrl::parse(&receiver.url).is_ok_and(|url| url.scheme() == Scheme::Https)
    };
    let mut known = receivers.into_iter().flatten().peekable();
    if known.peek().is_some()
        && !known.any(|receiver| secure(&receiver))
        && let Some(node) = section.get("tls")
    {
        let refusal = Refusal::new(Problem::Conflict)
            .wanted("a URL that begins with `https://`")
            .hint("without it nothing is encrypted");
        reader.refuse(&node, &refusal);
    }
}

fn temporality<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Temporality {
    let known = [
        ("cumulative", Temporality::Cumulative),
        ("delta", Temporality::Delta),
        ("low_memory", Temporality::LowMemory),
    ];
    let read = reader.optional(section, "temporality", |given| given.word(&known, &[]));
    read.unwrap_or_default()
}

fn histograms<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> HistogramForm {
    let known = [
        ("exponential", HistogramForm::Exponential),
        ("explicit", HistogramForm::Explicit),
    ];
    let read = reader.optional(section, "histograms", |given| given.word(&known, &[]));
    read.unwrap_or_default()
}

fn conventions<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Conventions {
    let known = [
        ("current", Conventions::Current),
        ("legacy", Conventions::Legacy),
    ];
    let read = reader.optional(section, "conventions", |given| given.word(&known, &[]));
    read.unwrap_or_default()
}

fn sampling<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<TraceSampling> {
    let section = reader.subsection(section, "sampling", &keys::SAMPLING)?;
    let mut sampling = TraceSampling::default();
    let ratio = reader.optional(&section, "ratio", ratio);
    sampling.ratio = ratio.unwrap_or(sampling.ratio);
    if let Some(section) = reader.subsection(&section, "tail", &keys::TAIL) {
        let failures = reader.optional(&section, "failures", |given| given.flag());
        let mut above = |key| {
            reader.optional(&section, key, |given| {
                given.duration(Duration::from_micros(1)..=MOST)
            })
        };
        sampling.tail = TailRules {
            failures: failures.unwrap_or(true),
            ttft: above("ttft"),
            itl: above("itl"),
            response_time: above("response_time"),
        };
    }
    Some(sampling)
}

/// A share of all, none of it included.
fn ratio(given: Given<'_>) -> Result<f64, Refusal> {
    match given.text() {
        Ok(text) if text.trim() == "0%" => Ok(0.0),
        _ => given.share(),
    }
}

/// What the resource says: what was found here, then what was written, then the service's name.
fn resource<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Vec<(String, String)> {
    let mut attributes = vec![("service.name".to_owned(), "tokencanary".to_owned())];
    attributes.extend(host::resource(reader.environment, Path::new("/")));
    let mut set = |name: &str, value: String| {
        attributes.retain(|(known, _)| known != name);
        attributes.push((name.to_owned(), value));
    };
    if let Some(node) = section.get("resource") {
        if let Some(dict) = node.value.as_dict() {
            for (name, value) in dict {
                let given = Given {
                    value,
                    untyped: false,
                };
                if let Some(text) = given.scalar() {
                    set(name, text);
                } else {
                    let mut node = node.clone();
                    node.path = format!("{}.{name}", node.path);
                    node.value = value;
                    reader.refuse(&node, &Refusal::new(Problem::WrongType).wanted("a text"));
                }
            }
        } else {
            let wanted = keys::OTLP.wanted("resource");
            reader.refuse(&node, &Refusal::new(Problem::WrongType).wanted(wanted));
        }
    }
    let name = reader.optional(section, "service_name", |given| match given.text()? {
        "" => Err(Refusal::new(Problem::NotUnderstood)),
        text => Ok(text.to_owned()),
    });
    if let Some(name) = name {
        set("service.name", name);
    }
    attributes
}
