//! What the surface shows of the processes of targets' servers that are on our machine.

use crate::export::catalog::{self, Metric};
use crate::export::prometheus::Gauge;
use crate::measurement::ProcessState;

/// All that is known of the server of the target called `target`.
pub(super) fn gauges(target: &str, process: &ProcessState) -> impl Iterator<Item = Gauge> {
    let group = &process.group;
    let plain = [
        (
            &catalog::SERVER_PROCESSES,
            Some(f64::from(process.processes)),
        ),
        (&catalog::SERVER_PROCESS_START, process.started),
        (&catalog::SERVER_PROCESS_CPU, process.cpu),
        (&catalog::SERVER_PROCESS_MEMORY, process.memory),
        (&catalog::SERVER_PROCESS_THREADS, process.threads),
        (&catalog::SERVER_CPU_LIMIT, group.cpu_limit),
        (&catalog::SERVER_CPU_PERIODS, group.periods),
        (
            &catalog::SERVER_CPU_THROTTLED_PERIODS,
            group.throttled_periods,
        ),
        (&catalog::SERVER_CPU_THROTTLED, group.throttled),
        (&catalog::SERVER_GROUP_MEMORY, group.memory),
        (&catalog::SERVER_GROUP_MEMORY_LIMIT, group.memory_limit),
        (&catalog::SERVER_OOM_KILLS, group.oom_kills),
    ];
    let nodes = &catalog::SERVER_PROCESS_NODES;
    let pressure = &catalog::SERVER_PRESSURE;
    let labelled = [
        (nodes, ("of", "cpu"), process.cpu_nodes),
        (nodes, ("of", "memory"), process.memory_nodes),
        (pressure, ("resource", "cpu"), group.cpu_waiting),
        (pressure, ("resource", "memory"), group.memory_waiting),
    ];
    let target = target.to_owned();
    let gauge = move |metric: &'static Metric, label: Option<(&'static str, &str)>, value| {
        let target = ("target", target.clone());
        let label = label.map(|(name, value)| (name, value.to_owned()));
        Gauge {
            metric,
            labels: std::iter::once(target).chain(label).collect(),
            value,
        }
    };
    let plain = plain
        .into_iter()
        .map(|(metric, value)| (metric, None, value));
    let labelled = labelled.into_iter();
    let labelled = labelled.map(|(metric, label, value)| (metric, Some(label), value));
    let all = plain.chain(labelled);
    all.filter_map(move |(metric, label, value)| Some(gauge(metric, label, value?)))
}
