//! The page of a node exporter on the simulated server's host, with the three families of the
//! kubelet that tell how a container's processors were throttled.

use super::page_text::PageText;
use crate::simulator::engine::Sums;

/// Processors of the host, and the mean that others use of them.
const CPUS: u32 = 16;
const OTHERS: f64 = 0.8;
/// Memory, bytes.
const MEMORY: f64 = 137_438_953_472.0;
const AVAILABLE: f64 = 98_784_247_808.0;
/// Length of one period of the scheduler's quota, seconds.
const PERIOD: f64 = 0.1;

/// What is known of the host.
pub(super) struct Host<'a> {
    pub(super) second: Sums,
    pub(super) sums: &'a Sums,
    /// Unix seconds at which the machine started.
    pub(super) booted: f64,
}

/// Processor seconds that the server's process used in a span, as many as it gets: one for the
/// loop of its engine while anything runs, and a part of one for the rest. One that is starved
/// gets less than it wants.
pub(super) fn server_cpu(sums: &Sums) -> f64 {
    0.06 * sums.elapsed + 1.1 * sums.busy
}

/// Processors in use on the whole host over a span, in seconds: all of them under pressure.
fn used(sums: &Sums) -> f64 {
    let calm = server_cpu(sums) + OTHERS * sums.elapsed;
    let share = sums.pressed / sums.elapsed.max(1e-9);
    calm * (1.0 - share) + f64::from(CPUS) * 0.98 * sums.pressed
}

/// The whole page.
pub(super) fn render(host: &Host<'_>) -> String {
    let mut page = PageText::default();
    let sums = host.sums;
    cpus(&mut page, sums);
    let second = &host.second;
    // Those that run, and those that wait to.
    let load = (used(second) + f64::from(CPUS) * second.pressed) / second.elapsed.max(1e-9);
    gauge(&mut page, ("node_load1", "1m load average."), load);
    gauge(
        &mut page,
        (
            "node_memory_MemTotal_bytes",
            "Memory information field MemTotal_bytes.",
        ),
        MEMORY,
    );
    gauge(
        &mut page,
        (
            "node_memory_MemAvailable_bytes",
            "Memory information field MemAvailable_bytes.",
        ),
        AVAILABLE,
    );
    gauge(
        &mut page,
        ("node_boot_time_seconds", "Node boot time, in unixtime."),
        host.booted,
    );
    let pressures = [
        (
            "node_pressure_cpu_waiting_seconds_total",
            "Total time in seconds that processes have waited for CPU time",
            0.004 * sums.elapsed + 0.72 * sums.pressed,
        ),
        (
            "node_pressure_memory_waiting_seconds_total",
            "Total time in seconds that processes have waited for memory",
            0.0,
        ),
        (
            "node_pressure_io_waiting_seconds_total",
            "Total time in seconds that processes have waited due to IO congestion",
            0.001 * sums.elapsed,
        ),
    ];
    for (name, help, value) in pressures {
        page.family(name, "counter", help);
        page.row(name, "", value);
    }
    throttling(&mut page, sums);
    page.finish()
}

fn cpus(page: &mut PageText, sums: &Sums) {
    const NAME: &str = "node_cpu_seconds_total";
    page.family(NAME, "counter", "Seconds the CPUs spent in each mode.");
    let each = used(sums) / f64::from(CPUS);
    for cpu in 0..CPUS {
        let modes = [
            ("idle", (sums.elapsed - each).max(0.0)),
            ("iowait", 0.0),
            ("system", each * 0.2),
            ("user", each * 0.8),
        ];
        for (mode, seconds) in modes {
            page.row(NAME, &format!(r#"cpu="{cpu}",mode="{mode}""#), seconds);
        }
    }
}

/// As cAdvisor tells it for the server's container.
fn throttling(page: &mut PageText, sums: &Sums) {
    const LABELS: &str = r#"container="server",namespace="inference",pod="canary-sim-0""#;
    let rows = [
        (
            "container_cpu_cfs_periods_total",
            "Number of elapsed enforcement period intervals.",
            (sums.elapsed / PERIOD).floor(),
        ),
        (
            "container_cpu_cfs_throttled_periods_total",
            "Number of throttled period intervals.",
            (0.85 * sums.pressed / PERIOD).floor(),
        ),
        (
            "container_cpu_cfs_throttled_seconds_total",
            "Total time duration the container has been throttled.",
            0.6 * sums.pressed,
        ),
    ];
    for (name, help, value) in rows {
        page.family(name, "counter", help);
        page.row(name, LABELS, value);
    }
}

fn gauge(page: &mut PageText, (name, help): (&str, &str), value: f64) {
    page.family(name, "gauge", help);
    page.row(name, "", value);
}
