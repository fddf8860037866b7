//! The board of the canary itself: whether its numbers can be trusted, and what it lost.

use super::Board;
use super::board::{Head, Row, Variable, build};
use super::panel::{Kind, Panel};
use super::query::{self, WINDOW};
use crate::export::catalog::{
    ARRIVALS, BUILD_INFO, CHUNKS, EXPORT_FAILURES, EXPORT_ITEMS, Metric, PROCESS_CPU,
    PROCESS_MAX_FDS, PROCESS_OPEN_FDS, PROCESS_RESIDENT_MEMORY, PROCESS_START_TIME,
    PROCESS_THREADS, PROCESS_VIRTUAL_MEMORY, READ_LAG, REQUESTS, REQUESTS_LAGGED, SCHEDULE_LAG,
    SCRAPES, STAMPS, STATUSES_DROPPED, STRAYS, STREAMS_LEFT_OUT, VALUES_CLAMPED, VALUES_REFUSED,
    WINDOWS_INCOMPLETE, WINDOWS_LATE,
};

/// The processes that are canaries: other programs have such metrics too.
const CANARIES: &str = "and on (job, instance) tokencanary_build_info";

pub(super) fn board() -> Board {
    let head = Head {
        name: "health",
        title: "tokencanary / Canary health",
        description: "The canary itself: whether its own delay is in its numbers, what it lost, and what it uses.",
    };
    let variables = [Variable::Histograms, Variable::Window];
    let row = |title, panels| Row { title, panels };
    let rows = [
        row("Now", now()),
        row("Own delay", delay()),
        row("Losses", losses()),
        row("Process", process()),
    ];
    build(&head, &variables, &rows)
}

fn share(part: &Metric, whole: &Metric) -> String {
    format!(
        "{} / ({} > 0)",
        query::increase(part, "", &[]),
        query::increase(whole, "", &[])
    )
}

fn now() -> Vec<Panel> {
    vec![
        Panel::stat("none", "Canaries", "Canaries that Prometheus reads.")
            .query("", format!("count({}) or vector(0)", BUILD_INFO.prometheus))
            .coloured(&[("red", None), ("green", Some(1.0))]),
        Panel::stat("none", "Version", "Version of each canary.")
            .query("{{version}}", format!("count by (version) ({})", BUILD_INFO.prometheus)),
        Panel::stat("percentunit", "Late by our fault", "Share of requests whose own lag is too large for a verdict.")
            .query("", share(&REQUESTS_LAGGED, &ARRIVALS))
            .coloured(&[("green", None), ("orange", Some(0.01)), ("red", Some(0.05))]),
        Panel::stat("none", "Unaccounted", "Requests that were due less requests that ended: each must end as exactly one record, so what is left is in flight.")
            .query("", format!("sum({}) - sum({})", ARRIVALS.prometheus, REQUESTS.prometheus)),
        Panel::stat("s", "Running for", "Time since the youngest canary started.")
            .query("", format!("time() - max({} {CANARIES})", PROCESS_START_TIME.prometheus)),
        Panel::stat("percentunit", "Lost by exporters", "Share of what exporters were given that did not arrive.")
            .query(
                "",
                format!(
                    "(sum(increase({0}{{result=~\"rejected|dropped|failed\"}}[{WINDOW}])) / (sum(increase({0}{{result=\"accepted\"}}[{WINDOW}])) > 0)) or vector(0)",
                    EXPORT_ITEMS.prometheus
                ),
            )
            .coloured(&[("green", None), ("orange", Some(0.001)), ("red", Some(0.01))]),
    ]
}

fn delay() -> Vec<Panel> {
    vec![
        Panel::lines("s", "Schedule lag", SCHEDULE_LAG.help).quantiles(&SCHEDULE_LAG, ""),
        Panel::lines("s", "Read lag", "Our own delay: from the kernel's receive to our read. Empty where the kernel gives no receive stamps.")
            .quantiles(&READ_LAG, ""),
        Panel::lines("percentunit", "Late by our fault", "Share of requests whose own lag is too large for a verdict, by probe.")
            .query(
                "{{probe}} at {{target}}",
                format!(
                    "{} / ({} > 0)",
                    query::increase(&REQUESTS_LAGGED, "", &["target", "probe"]),
                    query::increase(&ARRIVALS, "", &["target", "probe"])
                ),
            ),
        Panel::lines("percentunit", "Merged chunks", "Share of chunks whose own instant is not known, because later bytes came in the same read.")
            .query(
                "merged",
                format!(
                    "{} / ({} > 0)",
                    query::increase(&CHUNKS, "{kind=\"merged\"}", &[]),
                    query::increase(&CHUNKS, "", &[])
                ),
            ),
        Panel::new(Kind::Stacked, "reqps", "Clocks", "Responses by the clock of their instants: kernel is the best.")
            .query("{{clock}}", query::rate(&STAMPS, "", &["clock"])),
    ]
}

fn losses() -> Vec<Panel> {
    let lines = |title, description| Panel::lines("cps", title, description);
    let one = |title, metric: &Metric, by: &[&str]| {
        let legend: Vec<String> = by.iter().map(|label| format!("{{{{{label}}}}}")).collect();
        lines(title, metric.help).query(&legend.join(" "), query::rate(metric, "", by))
    };
    vec![
        one("Exporters", &EXPORT_ITEMS, &["exporter", "result"]),
        one("Failed tries of exporters", &EXPORT_FAILURES, &["exporter", "reason"]),
        one("Reads of servers' metrics pages", &SCRAPES, &["target", "result"]),
        one("Windows incomplete", &WINDOWS_INCOMPLETE, &["window"]),
        one("Records too late for their window", &WINDOWS_LATE, &["window"]),
        lines("Values not as they came", "Values that no histogram took, values outside the range of the histograms, and records counted without their HTTP status.")
            .query("refused", query::rate(&VALUES_REFUSED, "", &[]))
            .query("clamped, {{end}}", query::rate(&VALUES_CLAMPED, "", &["end"]))
            .query("without status", query::rate(&STATUSES_DROPPED, "", &[])),
        one("Strays", &STRAYS, &[]),
        Panel::lines("none", "Streams left out", STREAMS_LEFT_OUT.help)
            .query("left out", format!("max({})", STREAMS_LEFT_OUT.prometheus)),
    ]
}

fn process() -> Vec<Panel> {
    let of = |metric: &Metric| format!("{} {CANARIES}", metric.prometheus);
    vec![
        Panel::lines("percentunit", "CPU", "Share of one core.").query(
            "{{instance}}",
            format!("rate({}[{WINDOW}]) {CANARIES}", PROCESS_CPU.prometheus),
        ),
        Panel::lines("bytes", "Memory", "Resident and virtual memory.")
            .query("resident {{instance}}", of(&PROCESS_RESIDENT_MEMORY))
            .query("virtual {{instance}}", of(&PROCESS_VIRTUAL_MEMORY)),
        Panel::lines(
            "none",
            "File descriptors",
            "Open ones, and the most that may be.",
        )
        .query("open {{instance}}", of(&PROCESS_OPEN_FDS))
        .query("limit {{instance}}", of(&PROCESS_MAX_FDS))
        .dashed("/^limit/"),
        Panel::lines("none", "Threads", PROCESS_THREADS.help)
            .query("{{instance}}", of(&PROCESS_THREADS)),
    ]
}
