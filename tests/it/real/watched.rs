//! The canary before servers whose pages a proxy keeps: a run under load that leaves records and
//! what the program said of the servers at its end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::canary::{assert_ended_well, read};
use crate::program::{Program, free_address, get, tokencanary};

/// For the whole load, on a busy machine.
const LOAD: Duration = Duration::from_mins(4);
/// For what takes an instant.
const SOON: Duration = Duration::from_secs(30);

/// The name of a target, and its other keys.
pub(super) type Target<'a> = (&'a str, String);

/// What is asked of each target.
pub(super) struct Load {
    /// Random arrivals a second.
    pub(super) rate: f64,
    /// Length of the answers.
    pub(super) output_tokens: u32,
    /// Records that each target has to have.
    pub(super) records: usize,
}

/// What came of it.
pub(super) struct Watched {
    /// All records, by target.
    pub(super) records: BTreeMap<String, Vec<Value>>,
    /// The last word of `/api/v1/status`, by target.
    pub(super) said: BTreeMap<String, Value>,
}

/// Random arrivals, so that what the servers say moves.
fn config((targets, load): (&[Target<'_>], &Load), (listen, folder): (&str, &Path)) -> String {
    let rows = targets.iter().map(|(name, keys)| {
        format!("  - {{ name: {name}, {keys}, server_metrics_every: 500ms }}\n")
    });
    let names: Vec<&str> = targets.iter().map(|(name, _)| *name).collect();
    format!(
        "seed: 7
targets:
{}probes:
  - name: steady
    targets: [{}]
    when_full: wait
    arrivals: {{ process: poisson, rate: {}/s }}
    workload: {{ synthetic: {{ input_tokens: 24, output_tokens: {} }}, cache: cold }}
    limits: {{ first_token: 60s, gap: 60s, total: 300s }}
governor: {{ requests_per_day: 1000000, tokens_per_day: 1000M, in_flight: 16 }}
export:
  http: {{ listen: '{listen}' }}
  files: {{ dir: '{}' }}
",
        rows.collect::<String>(),
        names.join(", "),
        load.rate,
        load.output_tokens,
        folder.join("records").display()
    )
}

/// Runs the canary against `targets`, each a name and further keys with its page among them, until
/// each has records enough.
pub(super) async fn watch(
    folder: &Path,
    (targets, environment): (&[Target<'_>], &[(&str, &str)]),
    load: &Load,
) -> Watched {
    let listen = free_address().to_string();
    let file = folder.join("canary.yaml");
    let names: Vec<&str> = targets.iter().map(|(name, _)| *name).collect();
    fs::write(&file, config((targets, load), (&listen, folder))).expect("the folder is ours");
    let mut command = tokencanary();
    command.envs(environment.iter().copied());
    command.arg("run").arg("-c").arg(&file);
    let mut canary = Program::start("canary", folder, &mut command);
    let path = folder.join("records").join("requests.jsonl");
    let enough = async || {
        let records = by_target(read(&path));
        let has = |name: &&str| {
            records
                .get(*name)
                .is_some_and(|all| all.len() >= load.records)
        };
        names.iter().all(has).then_some(())
    };
    canary.until("records of every target", LOAD, enough).await;
    let status = format!("http://{listen}/api/v1/status");
    let status = async || serde_json::from_str(&get(&status).await?).ok();
    let status: Value = canary.until("status", SOON, status).await;
    let ended = canary.terminate(SOON).await;
    assert!(
        matches!(ended.code(), Some(0 | 143)),
        "{ended:?}: {}",
        canary.stderr()
    );
    let records = read(&path);
    records.iter().for_each(assert_ended_well);
    let said = status["targets"].as_array().expect("a list");
    let said = said.iter().map(|target| {
        let name = target["name"].as_str().expect("a name");
        (name.to_owned(), target["said"].clone())
    });
    Watched {
        records: by_target(records),
        said: said.collect(),
    }
}

fn by_target(records: Vec<Value>) -> BTreeMap<String, Vec<Value>> {
    let mut sorted = BTreeMap::<String, Vec<Value>>::new();
    for record in records {
        let target = record["target"].as_str().expect("every record has one");
        sorted.entry(target.to_owned()).or_default().push(record);
    }
    sorted
}
