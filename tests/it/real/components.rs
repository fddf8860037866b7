//! The real programs, each on a free loopback port, ready when its `start` returns.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::program::{Program, free_address, get};

/// Starting takes well under a second; a busy machine may take long.
const START: Duration = Duration::from_mins(1);

/// Where `tests/run` or `tests/real` has put a component.
pub(super) fn component(variable: &str) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests' own setting, not the product's"
    )]
    let place = std::env::var(variable);
    place.unwrap_or_else(|_| {
        panic!("`{variable}` is not set: start these tests with `tests/run`, or `tests/real NAME`")
    })
}

const FOUR_SLOTS: [&str; 4] = ["-np", "4", "-c", "4096"];

/// llama-server with the tiny model: 4 slots of 1024 tokens, metrics on.
pub(super) struct LlamaServer {
    program: Program,
    /// `http://` and address.
    pub(super) url: String,
}

impl LlamaServer {
    pub(super) async fn start(folder: &Path) -> Self {
        Self::start_with(folder, &FOUR_SLOTS).await
    }

    /// One slot with room for long prompts, which keeps nothing but what is in it.
    pub(super) async fn start_one_slot(folder: &Path) -> Self {
        Self::start_with(folder, &["-np", "1", "-c", "40960", "--cache-ram", "0"]).await
    }

    /// Ends it at once, as a crash would, and starts another one at its address.
    pub(super) async fn restart(mut self, folder: &Path) -> Self {
        self.program.signal("KILL");
        self.program.ended(START).await;
        let address = self.url.trim_start_matches("http://").parse();
        let address = address.expect("it is an address");
        Self::start_at(folder, address, &FOUR_SLOTS).await
    }

    async fn start_with(folder: &Path, slots: &[&str]) -> Self {
        Self::start_at(folder, free_address(), slots).await
    }

    async fn start_at(folder: &Path, address: SocketAddr, slots: &[&str]) -> Self {
        let mut command = Command::new(component("TOKENCANARY_LLAMA_SERVER"));
        command
            .args(["-m", &component("TOKENCANARY_TINY_GGUF"), "--alias", "tiny"])
            .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
            // One thread: the model is tiny, and the rest of the test needs the other core.
            .args(["--threads", "1", "--threads-batch", "1"])
            .args(slots)
            .args(["--metrics", "--slots", "--no-webui"]);
        let mut program = Program::start("llama-server", folder, &mut command);
        let url = format!("http://{address}");
        let health = format!("{url}/health");
        program
            .until("answer from /health", START, async || get(&health).await)
            .await;
        Self { program, url }
    }
}

/// Prometheus, scraping one address every second; it keeps exemplars.
pub(super) struct Prometheus {
    pub(super) program: Program,
    pub(super) url: String,
}

/// What a Prometheus asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scrape {
    /// Protobuf, for its native histograms.
    Native,
    /// `OpenMetrics`, as it does unless told otherwise.
    Classic,
}

impl Prometheus {
    /// Scrapes `target`, a host and port, native histograms on.
    pub(super) async fn start(folder: &Path, target: &str) -> Self {
        Self::start_as(folder, target, Scrape::Native).await
    }

    /// Scrapes `target` as `scrape` says.
    pub(super) async fn start_as(folder: &Path, target: &str, scrape: Scrape) -> Self {
        let text = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\n\
             scrape_configs:\n\
             - job_name: tokencanary\n\
             \x20 static_configs: [{{ targets: ['{target}'] }}]\n"
        );
        Self::launch(folder, (&text, &[]), scrape).await
    }

    /// With this configuration, in `prometheus.yml`, and further flags; native histograms on.
    pub(super) async fn start_with(folder: &Path, text: &str, flags: &[&str]) -> Self {
        Self::launch(folder, (text, flags), Scrape::Native).await
    }

    async fn launch(folder: &Path, (text, flags): (&str, &[&str]), scrape: Scrape) -> Self {
        let config = folder.join("prometheus.yml");
        std::fs::write(&config, text).expect("the folder is ours");
        let address = free_address();
        let mut command = Command::new(component("TOKENCANARY_PROMETHEUS"));
        command
            .args(flags)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("prometheus").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .arg(match scrape {
                Scrape::Native => "--enable-feature=exemplar-storage,native-histograms",
                Scrape::Classic => "--enable-feature=exemplar-storage",
            });
        let mut program = Program::start("prometheus-server", folder, &mut command);
        let url = format!("http://{address}");
        let ready = format!("{url}/-/ready");
        program
            .until("answer from /-/ready", START, async || get(&ready).await)
            .await;
        Self { program, url }
    }

    /// The one value of `expression` at the Unix time `at`, seconds; `None` without a sample.
    ///
    /// # Panics
    ///
    /// If there are several.
    pub(super) async fn value(&self, expression: &str, at: f64) -> Option<f64> {
        let results = self.query(expression, at).await?;
        assert!(
            results.len() <= 1,
            "`{expression}` has several series: {results:?}"
        );
        results.first()?["value"][1].as_str()?.parse().ok()
    }

    /// The bounds of the classic histogram whose buckets are `expression`, ascending.
    pub(super) async fn bounds(&self, expression: &str, at: f64) -> Vec<f64> {
        let buckets = self.query(expression, at).await.unwrap_or_default();
        let mut bounds: Vec<f64> = buckets
            .iter()
            .filter_map(|bucket| bucket["metric"]["le"].as_str()?.parse().ok())
            .collect();
        bounds.sort_by(f64::total_cmp);
        bounds
    }

    async fn query(&self, expression: &str, at: f64) -> Option<Vec<Value>> {
        let asked = [("query", expression), ("time", &format!("{at:.3}"))];
        let answer = self.ask("/api/v1/query", &asked).await?;
        answer["data"]["result"].as_array().cloned()
    }

    /// All exemplars of the series of `expression`, of the day before `at`.
    pub(super) async fn exemplars(&self, expression: &str, at: f64) -> Vec<Value> {
        let asked = [
            ("query", expression),
            ("start", &format!("{:.3}", at - 86_400.0)),
            ("end", &format!("{:.3}", at + 60.0)),
        ];
        let answer = self.ask("/api/v1/query_exemplars", &asked).await;
        let answer = answer.expect("it answers");
        let series = answer["data"].as_array().expect("a list");
        let lists = series.iter().map(|one| one["exemplars"].as_array());
        lists.flatten().flatten().cloned().collect()
    }

    async fn ask(&self, path: &str, asked: &[(&str, &str)]) -> Option<Value> {
        let mut url = reqwest::Url::parse(&self.url).expect("made above");
        url.set_path(path);
        url.query_pairs_mut().extend_pairs(asked);
        serde_json::from_str(&get(url.as_str()).await?).ok()
    }
}

/// oteltap: an OTLP/HTTP receiver that prints each span as a line of JSON.
pub(super) struct OtelTap {
    program: Program,
    /// The base URL for an exporter.
    pub(super) url: String,
}

/// What identifies a span.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SpanIds {
    pub(super) trace: String,
    pub(super) span: String,
}

impl OtelTap {
    pub(super) async fn start(folder: &Path) -> Self {
        let address = free_address();
        let mut command = Command::new(component("TOKENCANARY_OTELTAP"));
        command
            .args(["--port", &address.port().to_string()])
            .env("PYTHONUNBUFFERED", "1");
        let mut program = Program::start("oteltap", folder, &mut command);
        program
            .until("open port", START, async || {
                tokio::net::TcpStream::connect(address).await.ok()
            })
            .await;
        Self {
            program,
            url: format!("http://{address}"),
        }
    }

    /// The spans in order, once there are at least `count`.
    pub(super) async fn spans_settled(&mut self, count: usize, within: Duration) -> Vec<SpanIds> {
        let output = self.program.stdout_file();
        let mut spans = self
            .program
            .until("all spans", within, async || {
                Some(spans_in(&output)).filter(|spans| spans.len() >= count)
            })
            .await;
        spans.sort();
        spans
    }
}

/// The spans in oteltap's output.
fn spans_in(output: &Path) -> Vec<SpanIds> {
    let text = std::fs::read_to_string(output).unwrap_or_default();
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    complete
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        // Logs have ids of spans too.
        .filter(|line| line["startTimeUnixNano"].is_string())
        .filter_map(|span| {
            Some(SpanIds {
                trace: span["traceId"].as_str()?.to_owned(),
                span: span["spanId"].as_str()?.to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
    use prost::Message;

    use super::super::proxy::{METRICS, RecordingProxy};
    use super::*;
    use crate::program::scratch;

    const SOON: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn llama_answers_and_the_proxy_keeps_its_pages() {
        let folder = scratch("llama_answers");
        let mut llama = LlamaServer::start(&folder).await;
        let proxy = RecordingProxy::start(&llama.url).await;
        let body = serde_json::json!({
            "model": "tiny", "max_tokens": 8,
            "messages": [{"role": "user", "content": "the cat sat"}],
        });
        let answer: Value = crate::program::http_client()
            .build()
            .expect("the options are fixed")
            .post(format!("{}/v1/chat/completions", llama.url))
            .json(&body)
            .send()
            .await
            .expect("the server is ready")
            .json()
            .await
            .expect("an answer is JSON");
        assert_eq!(answer["usage"]["completion_tokens"], 8, "{answer}");

        let through = llama
            .program
            .until("page through the proxy", SOON, async || {
                get(&proxy.url(METRICS)).await
            })
            .await;
        let pages = proxy.pages(METRICS);
        assert_eq!(pages.len(), 1);
        assert_eq!(pages[0].body, through.as_bytes());
        assert_eq!(pages[0].value("llamacpp:tokens_predicted_total"), Some(8.0));
        assert_eq!(pages[0].value("llamacpp:requests_processing"), Some(0.0));
        assert_eq!(pages[0].value("llamacpp:tokens_predicted"), None);
    }

    #[tokio::test]
    async fn prometheus_scrapes_and_answers_queries() {
        let folder = scratch("prometheus_scrapes");
        let llama = LlamaServer::start(&folder).await;
        let target = llama.url.trim_start_matches("http://").to_owned();
        let mut prometheus = Prometheus::start(&folder, &target).await;
        let url = format!("{}/api/v1/query?query=up", prometheus.url);
        prometheus
            .program
            .until("sample of `up`", SOON, async || {
                get(&url).await.filter(|answer| answer.contains(r#","1"]"#))
            })
            .await;
        assert_eq!(prometheus.value("absent(up)", 1e9).await, Some(1.0));
        assert_eq!(prometheus.value("up", 1e9).await, None);
    }

    #[tokio::test]
    async fn oteltap_prints_every_span() {
        let folder = scratch("oteltap_prints");
        let mut tap = OtelTap::start(&folder).await;
        let span = |id: u8| Span {
            trace_id: vec![0xab; 16],
            span_id: vec![id; 8],
            name: "chat tiny".into(),
            ..Span::default()
        };
        let scope = ScopeSpans {
            spans: vec![span(1), span(2)],
            ..ScopeSpans::default()
        };
        let resource = ResourceSpans {
            scope_spans: vec![scope],
            ..ResourceSpans::default()
        };
        let request = ExportTraceServiceRequest {
            resource_spans: vec![resource],
        };
        let status = crate::program::http_client()
            .build()
            .expect("the options are fixed")
            .post(format!("{}/v1/traces", tap.url))
            .header("content-type", "application/x-protobuf")
            .body(request.encode_to_vec())
            .send()
            .await
            .expect("the receiver is ready")
            .status();
        assert_eq!(status.as_u16(), 200);
        let spans = tap.spans_settled(2, SOON).await;
        assert_eq!(spans[0].trace, "ab".repeat(16));
        assert_eq!(
            [&*spans[0].span, &*spans[1].span],
            ["0101010101010101", "0202020202020202"]
        );
    }
}
