//! A receiver of spans, metrics and logs that goes away: what is lost is counted, what is counted
//! as sent is there, and the measuring does not notice.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::setting::{said, shows_tokens};
use crate::gate::Gate;
use crate::program::{Program, scratch, tokencanary};
use crate::receiver::Receiver;

/// For what takes an instant, on a busy machine.
const SOON: Duration = Duration::from_secs(30);
/// From the signal to the end of the process, beyond the time for requests in flight: 0.7 s of
/// flushing, and the rest for a busy machine.
const FLUSHED: Duration = Duration::from_secs(5);

/// The load of an outage test.
pub(crate) struct Load {
    /// Arrivals per second.
    pub(crate) rate: u32,
    /// Time to the first token. Its tenth is the lag at which a record is `lagged`.
    pub(crate) ttft: &'static str,
    /// Spans that wait at most.
    pub(crate) queue: usize,
}

/// What a daemon is set in, each as YAML.
pub(crate) struct Setting<'a> {
    /// Arguments of the simulated server.
    pub(crate) server: &'a [&'a str],
    pub(crate) arrivals: &'a str,
    pub(crate) sizes: &'a str,
    pub(crate) otlp: &'a str,
}

/// A daemon and the simulated server it probes, each in a process of its own.
pub(crate) struct Canary {
    pub(crate) daemon: Program,
    simulator: Program,
    records: std::path::PathBuf,
}

impl Canary {
    /// Starts both; the spans go to `otlp`, a base URL. `environment` is added for the daemon.
    pub(crate) async fn start(
        folder: &Path,
        load: &Load,
        otlp: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        let arrivals = format!("{{ process: constant, rate: {}/s }}", load.rate);
        let setting = Setting {
            server: &["--profile", "fixed", "--ttft", load.ttft, "--itl", "20ms"],
            arrivals: &arrivals,
            sizes: "{ input_tokens: 16, output_tokens: 2 }",
            otlp: &format!(
                "{{ endpoint: '{otlp}', queue: {}, every: 500ms, headers: {{ x-given: file, x-kept: file }} }}",
                load.queue
            ),
        };
        Self::start_in(folder, &setting, environment).await
    }

    /// Starts both as `setting` says.
    pub(crate) async fn start_in(
        folder: &Path,
        setting: &Setting<'_>,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = tokencanary();
        command.arg("simulate").args(setting.server);
        command.args(["--listen", "127.0.0.1:0"]);
        let mut simulator = Program::start("simulator", folder, &mut command);
        let url = said(&mut simulator, "listening on ").await;

        let records = folder.join("records");
        let file = folder.join("canary.yaml");
        let text = format!(
            "seed: 7
targets:
  - {{ name: simulated, url: '{url}', server_metrics: off }}
probes:
  - name: steady
    targets: [simulated]
    arrivals: {}
    workload: {{ synthetic: {}, cache: cold }}
governor: {{ requests_per_day: 1000000, tokens_per_day: 1000M, in_flight: 1000 }}
export:
  http: {{ listen: '127.0.0.1:0' }}
  otlp: {}
  files: {{ dir: '{}' }}
",
            setting.arrivals,
            setting.sizes,
            setting.otlp,
            records.display()
        );
        fs::write(&file, text).expect("the folder is ours");
        let mut command = tokencanary();
        command.envs(environment.iter().copied());
        command.arg("run").arg("-c").arg(&file);
        let mut daemon = Program::start("canary", folder, &mut command);
        said(&mut daemon, "page and metrics on ").await;
        Self {
            daemon,
            simulator,
            records: records.join("requests.jsonl"),
        }
    }

    /// Stops the daemon, then the server.
    pub(crate) async fn stop(mut self) -> Ended {
        let status = self.daemon.terminate(SOON).await;
        let text = self.daemon.stderr();
        assert_eq!(status.code(), Some(143), "{text}");
        drop(self.simulator);
        assert!(!text.contains("did not end in time"), "{text}");
        Ended {
            traces: Account::of("otlp_traces", &text),
            metrics: Account::of("otlp_metrics", &text),
            logs: Account::of("otlp_logs", &text),
            files: Account::of("files", &text),
            records: read(&self.records),
        }
    }
}

/// What a daemon left behind.
pub(crate) struct Ended {
    pub(crate) traces: Account,
    pub(crate) metrics: Account,
    pub(crate) logs: Account,
    pub(crate) files: Account,
    pub(crate) records: Vec<Value>,
}

impl Ended {
    /// The accounts close, the outage hurt no measurement, no arrival is missing, and `held`, the
    /// ids of the spans as the receiver has them, are what was sent.
    pub(crate) fn assert_honest(&self, held: &[String]) {
        self.assert_counted(held);
        // A busy machine can hold up one now and then; what an outage does, it does to all of it.
        let (lagged, all) = (self.lagged(), self.records.len());
        assert!(lagged <= 2 + all / 50, "{lagged} of {all} were lagged");
    }

    /// Records that came too late by our own doing.
    pub(crate) fn lagged(&self) -> usize {
        let lagged = self
            .records
            .iter()
            .filter(|record| record["lagged"] == true);
        lagged.count()
    }

    /// The same, on a machine that may be too busy to measure well.
    pub(crate) fn assert_counted(&self, held: &[String]) {
        for account in [self.traces, self.metrics, self.logs] {
            let Account {
                accepted,
                sent,
                rejected,
                dropped,
                failed,
            } = account;
            assert_eq!(accepted, sent + rejected + dropped + failed, "{account:?}");
        }
        let sent = self.traces.sent;
        assert_eq!(self.traces.accepted, self.records.len());
        assert_eq!(self.files.sent, self.records.len());
        assert_eq!(self.files.accepted, self.files.sent);

        let mut sequences: Vec<_> = self
            .records
            .iter()
            .map(|record| record["sequence"].as_u64().expect("a number"))
            .collect();
        sequences.sort_unstable();
        let wanted: Vec<_> = (0_u64..).take(self.records.len()).collect();
        assert_eq!(sequences, wanted, "an arrival is missing");
        for record in &self.records {
            // One may be due in the instant of the stop.
            let is_last = record["sequence"] == wanted.len() - 1;
            let expected = match record["refused_reason"].as_str() {
                Some("shutdown") if is_last => "refused",
                _ => "ok",
            };
            assert_eq!(record["outcome"], expected, "{record}");
        }

        let ids: BTreeSet<_> = self.span_ids(|_| true);
        let distinct: BTreeSet<_> = held.iter().cloned().collect();
        assert_eq!((distinct.len(), held.len()), (sent, sent));
        assert!(distinct.is_subset(&ids), "a span without a record");
    }

    /// The span ids of the records that `wanted` holds for.
    pub(crate) fn span_ids(&self, wanted: impl Fn(&Value) -> bool) -> BTreeSet<String> {
        self.records
            .iter()
            .filter(|record| wanted(record))
            .map(|record| record["span_id"].as_str().expect("a text").to_owned())
            .collect()
    }
}

/// What became of the records at one exporter, as the daemon says at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) accepted: usize,
    pub(crate) sent: usize,
    pub(crate) rejected: usize,
    pub(crate) dropped: usize,
    pub(crate) failed: usize,
}

impl Account {
    fn of(exporter: &str, text: &str) -> Self {
        let begin = format!("{exporter}: accepted ");
        let line = text.lines().find(|line| line.starts_with(&begin));
        let line = line.unwrap_or_else(|| panic!("no account of `{exporter}`:\n{text}"));
        let value = |name: &str| {
            let (_, rest) = line.split_once(name).expect("all five are there");
            let digits = rest.trim_start().split(',').next().expect("never empty");
            digits.parse().expect("a count")
        };
        Self {
            accepted: value("accepted"),
            sent: value("sent"),
            rejected: value("rejected"),
            dropped: value("dropped"),
            failed: value("failed"),
        }
    }
}

fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("the daemon wrote its records");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_an_outage_costs_is_counted_and_nothing_else_is_lost() {
    let folder = scratch("outage");
    let (receiver, url) = Receiver::start().await;
    let mut gate = Gate::start(&url).await;
    let load = Load {
        rate: 40,
        ttft: "1s",
        queue: 16,
    };
    let mut canary = Canary::start(&folder, &load, &gate.url(), &[]).await;
    // The first batch, so that there is a connection to lose.
    canary
        .daemon
        .until("span", SOON, async || {
            (!receiver.spans().is_empty()).then_some(())
        })
        .await;
    gate.close().await;
    let closed = Instant::now();
    let before = receiver.spans();
    sleep_until(closed + Duration::from_secs(3)).await;
    assert_eq!(receiver.spans(), before, "the gate is shut");
    gate.open().await;
    // The queue and what came after it, in batches of their own.
    canary
        .daemon
        .until("spans after the outage", SOON, async || {
            (receiver.spans().len() >= before.len() + 60).then_some(())
        })
        .await;
    let ended = canary.stop().await;
    // 120 spans came in the 3 s; 16 fit into the queue, about 40 were on their way.
    assert!(ended.traces.dropped >= 20, "{:?}", ended.traces);
    assert_eq!(ended.traces.failed, 0, "{:?}", ended.traces);
    ended.assert_honest(&receiver.spans());

    // Metrics of an outage are made up for by the next ones: what was told last is all that was.
    assert!(ended.metrics.failed > 0, "{:?}", ended.metrics);
    assert_eq!(receiver.points(), ended.metrics.sent);
    let ttfts: Vec<f64> = ended
        .records
        .iter()
        .filter(|record| shows_tokens(record))
        .filter_map(|record| record["times_ms"]["ttft"].as_f64())
        .collect();
    let last = receiver.last("tokencanary.request.ttft");
    let (count, sum, counted) = last.expect("it was told");
    assert_eq!((count, counted), (ttfts.len() as u64, ttfts.len() as u64));
    let whole = ttfts.iter().sum::<f64>() / 1e3;
    assert!((sum - whole).abs() < 1e-3 * whole, "{sum} is not {whole}");

    // Each of the other two signals went down and came back, and was told of.
    let logs = receiver.held().logs.clone();
    assert_eq!(logs.len(), ended.logs.sent);
    let states = logs
        .iter()
        .filter(|name| *name == "tokencanary.exporter.state");
    assert!(states.count() >= 4, "{logs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_dead_receiver_does_not_hold_up_the_end() {
    let folder = scratch("dead_receiver");
    let (receiver, url) = Receiver::start().await;
    let mut gate = Gate::start(&url).await;
    let load = Load {
        rate: 40,
        ttft: "100ms",
        queue: 16,
    };
    gate.close().await;
    let mut canary = Canary::start(&folder, &load, &gate.url(), &[]).await;
    said(&mut canary.daemon, "does not take spans").await;
    let told = Instant::now();
    let ended = canary.stop().await;
    assert!(told.elapsed() < FLUSHED, "{:?}", told.elapsed());
    assert!(
        ended.traces.failed > 0 && ended.traces.sent == 0,
        "{:?}",
        ended.traces
    );
    assert_eq!(
        ended.traces.accepted,
        ended.traces.failed + ended.traces.dropped
    );
    assert_eq!(ended.files.sent, ended.records.len());
    assert!(receiver.spans().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_variables_of_all_programs_come_on_top_of_the_file() {
    let folder = scratch("otlp_headers");
    let (receiver, url) = Receiver::start().await;
    let load = Load {
        rate: 10,
        ttft: "1ms",
        queue: 16,
    };
    let environment = [
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "x-given=environment,x-more=a%20b",
        ),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*url),
        ("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "gzip"),
    ];
    // Where the file says it goes, nobody listens.
    let mut canary = Canary::start(&folder, &load, "http://127.0.0.1:1", &environment).await;
    let look = async || receiver.headers();
    let headers = canary.daemon.until("span", SOON, look).await;
    assert_eq!(headers["x-given"], "environment");
    assert_eq!(headers["x-more"], "a b");
    assert_eq!(headers["x-kept"], "file");
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["content-encoding"], "gzip");
}

#[test]
fn an_account_is_read_from_its_line() {
    let text = "a log line\notlp_logs: accepted 1\notlp: accepted 10, sent 4, rejected 1, dropped 3, failed 2\n";
    let wanted = Account {
        accepted: 10,
        sent: 4,
        rejected: 1,
        dropped: 3,
        failed: 2,
    };
    assert_eq!(Account::of("otlp", text), wanted);
}
