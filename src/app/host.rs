//! What the surface shows of the machine that we run on.

use crate::export::catalog::{self, Metric};
use crate::export::prometheus::Gauge;
use crate::telemetry::{HostState, Pressures};

/// All that is known of it.
pub(super) fn gauges(state: &HostState) -> Vec<Gauge> {
    let mut gauges = Gauges(Vec::new());
    if let Some(cpu) = &state.cpu {
        for (mode, seconds) in [
            ("user", cpu.user),
            ("system", cpu.system),
            ("idle", cpu.idle),
            ("iowait", cpu.iowait),
            ("steal", cpu.steal),
        ] {
            gauges.add(&catalog::HOST_CPU_TIME, &[("mode", mode)], Some(seconds));
        }
        gauges.add(&catalog::HOST_CPUS, &[], Some(f64::from(cpu.cpus)));
    }
    gauges.add(&catalog::HOST_LOAD, &[], state.load);
    gauges.add(&catalog::HOST_MEMORY_TOTAL, &[], state.memory_total);
    gauges.add(&catalog::HOST_MEMORY_AVAILABLE, &[], state.memory_available);
    if let Some((received, sent)) = &state.network {
        for (direction, traffic) in [("receive", received), ("transmit", sent)] {
            let labels = [("direction", direction)];
            gauges.add(&catalog::HOST_NETWORK_IO, &labels, Some(traffic.bytes));
            gauges.add(&catalog::HOST_NETWORK_LOST, &labels, Some(traffic.lost));
        }
    }
    if let Some((sent, again)) = state.segments {
        gauges.add(&catalog::HOST_TCP_SEGMENTS, &[], Some(sent));
        gauges.add(&catalog::HOST_TCP_RETRANSMITS, &[], Some(again));
    }
    gauges.pressure("host", &state.pressure);
    let group = &state.group;
    gauges.pressure("cgroup", &group.pressure);
    for (metric, value) in [
        (&catalog::CGROUP_CPU_LIMIT, group.cpu_limit),
        (&catalog::CGROUP_CPU_PERIODS, group.periods),
        (
            &catalog::CGROUP_CPU_THROTTLED_PERIODS,
            group.throttled_periods,
        ),
        (&catalog::CGROUP_CPU_THROTTLED, group.throttled),
        (&catalog::CGROUP_MEMORY_USAGE, group.memory),
        (&catalog::CGROUP_MEMORY_LIMIT, group.memory_limit),
    ] {
        gauges.add(metric, &[], value);
    }
    gauges.0
}

struct Gauges(Vec<Gauge>);

impl Gauges {
    fn add(
        &mut self,
        metric: &'static Metric,
        labels: &[(&'static str, &str)],
        value: Option<f64>,
    ) {
        if let Some(value) = value {
            let labels = labels
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()));
            self.0.push(Gauge {
                metric,
                labels: labels.collect(),
                value,
            });
        }
    }

    fn pressure(&mut self, of: &str, pressures: &Pressures) {
        for (resource, pressure) in [
            ("cpu", pressures.cpu),
            ("memory", pressures.memory),
            ("io", pressures.io),
        ] {
            for (waiting, seconds) in [("some", pressure.some), ("full", pressure.full)] {
                let labels = [("of", of), ("resource", resource), ("waiting", waiting)];
                self.add(&catalog::HOST_PRESSURE, &labels, seconds);
            }
        }
    }
}
