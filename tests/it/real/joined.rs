//! The canary before a server that traces: the spans of both come to one receiver, and those of
//! the server hang below ours.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::program::{Program, tell, tokencanary};
use crate::receiver::{Received, Receiver};

/// Whoever sends spans may gather them for a while.
const SOON: Duration = Duration::from_mins(1);
/// Requests of the canary that have to be answered.
const REQUESTS: usize = 20;

/// What came of a run that traces half of its requests.
pub(super) struct Traced<'a> {
    receiver: &'a Receiver,
    records: Vec<Value>,
    ours: Vec<Received>,
}

/// Runs the canary against `target`, keys of a target, with further variables of the environment;
/// its spans go to `collector`.
pub(super) async fn trace<'a>(
    folder: &Path,
    (target, environment): (&str, &[(&str, &str)]),
    (receiver, collector): (&'a Receiver, &str),
) -> Traced<'a> {
    let records = folder.join("records");
    let file = folder.join("canary.yaml");
    let text = format!(
        "seed: 7
targets:
  - {{ name: traced, {target}, server_metrics: off }}
probes:
  - name: steady
    targets: [traced]
    arrivals: {{ process: constant, rate: 5/s }}
    workload: {{ synthetic: {{ input_tokens: 32, output_tokens: 4 }} }}
export:
  http: {{ listen: '127.0.0.1:0' }}
  otlp:
    endpoint: '{collector}'
    signals: [traces]
    sampling: {{ ratio: 50%, tail: {{ failures: false }} }}
  files: {{ dir: '{}' }}
",
        records.display()
    );
    fs::write(&file, text).expect("the folder is ours");
    let mut command = tokencanary();
    command.envs(environment.iter().copied());
    command.arg("run").arg("-c").arg(&file);
    let mut canary = Program::start("canary", folder, &mut command);
    let file = records.join("requests.jsonl");
    let lines = || fs::read_to_string(&file).unwrap_or_default();
    let enough = async || (lines().lines().count() >= REQUESTS).then_some(());
    canary.until("records", SOON, enough).await;
    let status = canary.terminate(SOON).await;
    assert_eq!(status.code(), Some(143), "{}", canary.stderr());
    let records: Vec<Value> = lines()
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record is JSON"))
        .collect();
    // What a busy machine kept from being sent has a span of ours alone.
    let answered = |span: &Received| {
        let of = |record: &&Value| record["span_id"] == *span.span;
        let record = records.iter().find(of).expect("each span is a record");
        record["outcome"] == "ok"
    };
    let mut ours = of_service(receiver, "tokencanary");
    ours.retain(answered);
    assert!(
        (3..records.len()).contains(&ours.len()),
        "half are traced: {} of {}",
        ours.len(),
        records.len()
    );
    Traced {
        receiver,
        records,
        ours,
    }
}

impl Traced<'_> {
    /// Each of our spans has one child, of the service and name `head`, in its own trace, and
    /// somewhere below it one of `deeper`; a request that is not traced has none. `program` is
    /// the server.
    pub(super) async fn assert_joined(
        &self,
        program: &mut Program,
        head: (&str, &str),
        deeper: Option<(&str, &str)>,
    ) {
        let wanted: Vec<_> = [Some(head), deeper].into_iter().flatten().collect();
        let come = async || {
            let count = |(service, name): &(&str, &str)| {
                let spans = of_service(self.receiver, service).into_iter();
                let traces = spans.filter(|span| span.name == *name);
                let traces: BTreeSet<String> = traces.map(|span| span.trace).collect();
                let mut ours = self.ours.iter();
                ours.all(|span| traces.contains(&span.trace))
            };
            wanted.iter().all(count).then_some(())
        };
        program.until("spans of the server", SOON, come).await;
        let all = self.receiver.held().spans.clone();
        for span in &self.ours {
            assert_eq!(span.parent, "");
            let below = below(&all, &span.span);
            let is = |one: &&&Received, (service, name): (&str, &str)| {
                one.service == service && one.name == name && one.trace == span.trace
            };
            let heads = below.iter().filter(|one| is(one, head));
            let heads: Vec<_> = heads.filter(|one| one.parent == span.span).collect();
            assert_eq!(heads.len(), 1, "{below:?}");
            if let Some(deeper) = deeper {
                let found = below.iter().filter(|one| is(one, deeper)).count();
                assert!(found > 0, "{below:?}");
            }
        }
        let traced: BTreeSet<&str> = self.ours.iter().map(|span| span.trace.as_str()).collect();
        let answered = self.records.iter().filter(|one| one["outcome"] == "ok");
        let untraced = answered.filter_map(|record| {
            let trace = record["trace_id"].as_str()?;
            (!traced.contains(trace)).then_some(trace)
        });
        let untraced: BTreeSet<&str> = untraced.collect();
        let strays: Vec<_> = all
            .iter()
            .filter(|one| untraced.contains(one.trace.as_str()))
            .collect();
        assert!(strays.is_empty(), "{strays:?}");
        let (service, name) = head;
        tell(&format!(
            "{} of {} requests traced; below each of their spans a span `{name}` of {service}; none of the others",
            self.ours.len(),
            self.records.len()
        ));
    }
}

/// The spans of `all` that hang below `span`, however far down.
fn below<'a>(all: &'a [Received], span: &str) -> Vec<&'a Received> {
    let mut found: Vec<&Received> = all.iter().filter(|one| one.parent == span).collect();
    let mut next = 0;
    while let Some(above) = found.get(next) {
        let more = all.iter().filter(|one| one.parent == above.span);
        let more: Vec<_> = more.collect();
        found.extend(more);
        next += 1;
    }
    found
}

fn of_service(receiver: &Receiver, name: &str) -> Vec<Received> {
    let held = receiver.held();
    let spans = held.spans.iter().filter(|span| span.service == name);
    spans.cloned().collect()
}
