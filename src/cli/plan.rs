//! What a configuration will send per day: for `check` as tables, for `init` in sentences.

use crate::config::Config;
use crate::report::{Budget, ObjectiveRow, PlanRow, objectives_table, plan_sentences, plan_table};

/// Requests and tokens per day, against the budget, and what is wanted of them.
pub(super) fn plan(config: &Config) -> String {
    let objectives: Vec<ObjectiveRow> = config
        .probes
        .iter()
        .map(|probe| ObjectiveRow {
            probe: probe.name.clone(),
            slo: probe.slo,
            rate: probe.mean_rate(),
        })
        .collect();
    let mut out = plan_table(&rows(config), budget(config));
    let wanted = objectives_table(&objectives);
    if !wanted.is_empty() {
        out.push('\n');
        out.push_str(&wanted);
    }
    out
}

/// Requests and tokens per day, against the budget, a sentence each.
pub(super) fn sentences(config: &Config) -> Vec<String> {
    plan_sentences(&rows(config), budget(config))
}

/// Each probe against each of its targets.
fn rows(config: &Config) -> Vec<PlanRow> {
    let mut rows = Vec::new();
    for probe in &config.probes {
        let rate = probe.mean_rate();
        let (input_tokens, output_tokens) = probe.workload.mean_tokens();
        rows.extend(probe.targets.iter().map(|target| PlanRow {
            probe: probe.name.clone(),
            target: target.clone(),
            rate,
            input_tokens,
            output_tokens,
        }));
    }
    rows
}

const fn budget(config: &Config) -> Budget {
    Budget {
        requests_per_day: config.governor.requests_per_day,
        tokens_per_day: config.governor.tokens_per_day,
    }
}
