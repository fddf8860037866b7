//! The board of all targets: what is wrong, where, and how much of the budgets is left.

use super::Board;
use super::board::{Choice, Head, Row, Variable, build};
use super::panel::{Kind, Panel};
use super::query::{self, CHOSEN, TARGET};
use super::slo;
use crate::export::catalog::{
    ARRIVALS, ARRIVALS_REFUSED, BUDGET_REQUESTS_LIMIT, BUDGET_REQUESTS_USED, BUDGET_TOKENS_LIMIT,
    BUDGET_TOKENS_USED, CERTIFICATE_EXPIRY, IN_FLIGHT, IN_FLIGHT_LIMIT, ITL, LAST_SUCCESS, Metric,
    REQUESTS, REQUESTS_EXCUSED, RESPONSE_TIME_OR_FAILURE, SERVER_KV_USAGE, SERVER_RUNNING,
    SERVER_WAITING, TARGET_STATE, TTFT, TTFT_OR_FAILURE,
};
use crate::export::rules::{Quantile, recorded, series};

/// Labels that name a stream in a list.
const LISTED: [&str; 5] = ["target", "endpoint", "probe", "model", "cache"];
/// The same in a legend.
const NAMED: &str = "{{probe}} at {{target}} {{endpoint}} {{cache}}";

pub(super) fn board() -> Board {
    let head = Head {
        name: "overview",
        title: "tokencanary / Overview",
        description: "All targets: state, latency, success, regressions, budgets. Baselines, alerts and burn rates need the rules to be loaded.",
    };
    let variables = [
        Variable::Histograms,
        Variable::Window,
        Variable::Label("target", "tokencanary_arrivals_total", Choice::Many),
        Variable::Label(
            "probe",
            "tokencanary_arrivals_total{target=~\"$target\"}",
            Choice::Many,
        ),
    ];
    let row = |title, panels| Row { title, panels };
    let rows = [
        row("Now", now()),
        row("Streams", vec![streams(), alerts()]),
        row("Latency", latency()),
        row("Requests", requests()),
        row("Servers", servers()),
        row("Objectives", slo::panels(CHOSEN, "target, probe")),
        row("Budgets", budgets()),
    ];
    build(&head, &variables, &rows)
}

/// How many alerts of some names fire.
fn firing(names: &str) -> String {
    format!("count(ALERTS{{alertname=~\"{names}\", alertstate=\"firing\"}}) or vector(0)")
}

fn now() -> Vec<Panel> {
    let red_from_one = [("green", None), ("red", Some(1.0))];
    let stat = Panel::stat;
    vec![
        stat("none", "Targets down", "Targets of which no request was good lately, by the alert.")
            .query("", firing("TokencanaryTargetDown"))
            .coloured(&red_from_one),
        stat("none", "Regressions", "Streams whose p95 TTFT or ITL is far above their baseline, by the alerts.")
            .query("", firing("TokencanaryTtftRegression|TokencanaryItlRegression"))
            .coloured(&red_from_one),
        stat("none", "Other alerts", "All other alerts of these rules that fire.")
            .query(
                "",
                "count(ALERTS{alertname=~\"Tokencanary.+\", alertname!~\"TokencanaryTargetDown|TokencanaryTtftRegression|TokencanaryItlRegression\", alertstate=\"firing\"}) or vector(0)",
            )
            .coloured(&[("green", None), ("orange", Some(1.0))]),
        stat("percentunit", "Success", "Share of good requests among those that count, over all chosen streams.")
            .query("", success(&[]))
            .coloured(&[("red", None), ("orange", Some(0.95)), ("green", Some(0.99))]),
        stat("s", "Oldest last success", "Age of the last good answer of the stream where it is oldest.")
            .query("", format!("time() - min({}{CHOSEN})", LAST_SUCCESS.prometheus)),
        stat("percentunit", "Budget used", "The larger of the shares of today's requests and tokens that are used.")
            .query(
                "",
                format!(
                    "max({} / {}) or max({} / {})",
                    BUDGET_TOKENS_USED.prometheus, BUDGET_TOKENS_LIMIT.prometheus,
                    BUDGET_REQUESTS_USED.prometheus, BUDGET_REQUESTS_LIMIT.prometheus,
                ),
            )
            .coloured(&[("green", None), ("orange", Some(0.8)), ("red", Some(1.0))]),
    ]
}

/// Share of good requests, without the rules: ok among all but those that count for nobody.
fn success(by: &[&str]) -> String {
    let of = |metric: &Metric, matcher: &str| {
        let selector = format!("{{target=~\"$target\", probe=~\"$probe\"{matcher}}}");
        query::increase(metric, &selector, by)
    };
    let arrivals = of(&ARRIVALS, "");
    let less =
        |metric: &Metric, matcher: &str| format!("- ({} or 0 * {arrivals})", of(metric, matcher));
    format!(
        "(\n  {}\n  {}\n)\n/ (\n  {arrivals}\n  {}\n  {}\n  {} > 0\n)",
        of(&REQUESTS, ", outcome=\"ok\""),
        less(&REQUESTS_EXCUSED, ", result=\"ok\""),
        less(&ARRIVALS_REFUSED, ", reason!=\"in_flight\""),
        less(&REQUESTS, ", outcome=\"cancelled\""),
        less(&REQUESTS_EXCUSED, ""),
    )
}

fn streams() -> Panel {
    let baseline = recorded(&TTFT_OR_FAILURE, "p95_baseline");
    let ttft = (&TTFT, CHOSEN);
    Panel::new(
        Kind::Table,
        "s",
        "Streams",
        "The numbers of the chosen window. A quantile that too few requests carry is left out. Normal is the median of the p95 of the day, failures counted as never.",
    )
    .quantile(("p50 TTFT", Quantile::P50), ttft, &LISTED)
    .quantile(("p95 TTFT", Quantile::P95), ttft, &LISTED)
    .quantile(("p95 ITL", Quantile::P95), (&ITL, CHOSEN), &LISTED)
    .query(
        "normal p95 TTFT",
        format!("max by ({}) ({baseline}{CHOSEN})", LISTED.join(", ")),
    )
    .query("success", success(&LISTED))
    .query("requests", query::increase(&ARRIVALS, CHOSEN, &LISTED))
    .unit_of("success", "percentunit")
    .unit_of("requests", "none")
}

fn alerts() -> Panel {
    Panel::new(
        Kind::Table,
        "none",
        "Alerts",
        "Alerts of these rules that fire or are about to; the value is always 1. Empty is good.",
    )
    .query(
        "firing",
        "sum by (alertname, severity, alertstate, target, endpoint, probe, slo) (ALERTS{alertname=~\"Tokencanary.+\"})",
    )
}

fn latency() -> Vec<Panel> {
    let by = ["target", "endpoint", "probe", "cache"];
    vec![
        Panel::lines("s", "p95 TTFT", "Time from start to the first token, good requests. Dots are single requests: their trace is one click away.")
            .quantile((NAMED, Quantile::P95), (&TTFT, CHOSEN), &by),
        Panel::lines("s", "p95 ITL", "Mean time between the tokens of one request, good requests.")
            .quantile((NAMED, Quantile::P95), (&ITL, CHOSEN), &by),
        Panel::lines("s", "p95 response time, failures as never", "From when a request was due to its last token. A failed request counts as infinite: more than 5 % of them, and the line is at the top.")
            .quantile((NAMED, Quantile::P95), (&RESPONSE_TIME_OR_FAILURE, CHOSEN), &by),
        Panel::lines("none", "p95 TTFT against normal", "How many times its baseline the p95 is, failures counted as never. Recorded by the rules.")
            .query(
                NAMED,
                format!(
                    "max by ({}) ({}{CHOSEN} / {}{CHOSEN})",
                    by.join(", "),
                    recorded(&TTFT_OR_FAILURE, "p95"),
                    recorded(&TTFT_OR_FAILURE, "p95_baseline")
                ),
            ),
        Panel::lines("none", "p95 ITL against normal", "How many times its baseline the p95 is. Recorded by the rules.")
            .query(
                NAMED,
                format!(
                    "max by ({}) ({}{CHOSEN} / {}{CHOSEN})",
                    by.join(", "),
                    recorded(&ITL, "p95"),
                    recorded(&ITL, "p95_baseline")
                ),
            ),
    ]
}

fn requests() -> Vec<Panel> {
    let by = ["target", "endpoint", "probe", "cache"];
    vec![
        Panel::lines(
            "percentunit",
            "Success",
            "Share of good requests among those that count.",
        )
        .query(NAMED, success(&by)),
        Panel::new(
            Kind::Stacked,
            "reqps",
            "Requests by outcome",
            "What became of each request that was due.",
        )
        .query("{{outcome}}", query::rate(&REQUESTS, CHOSEN, &["outcome"])),
        Panel::lines(
            "percentunit",
            "Success, recorded",
            "The same as the rules record it, over the window of the rules; alerts look at this.",
        )
        .query(NAMED, format!("{}{CHOSEN}", series::SUCCESS)),
        Panel::new(
            Kind::Stacked,
            "reqps",
            "Starts of servers",
            "Requests that count for nobody, since they belong to a start of the server: failures while it is away, and the first ones after it.",
        )
        .query(
            "{{result}}",
            query::rate(&REQUESTS_EXCUSED, CHOSEN, &["result"]),
        ),
    ]
}

fn servers() -> Vec<Panel> {
    let of = |metric: &Metric| format!("max by (target) ({}{TARGET})", metric.prometheus);
    vec![
        Panel::new(
            Kind::Stacked,
            "none",
            "Targets by state",
            "Addresses of targets by how they stand: starting, warming, serving, down, gone.",
        )
        .query(
            "{{state}}",
            format!("sum by (state) ({}{TARGET})", TARGET_STATE.prometheus),
        ),
        Panel::lines(
            "none",
            "Running and waiting",
            "Requests the servers say they execute and queue.",
        )
        .query("running at {{target}}", of(&SERVER_RUNNING))
        .query("waiting at {{target}}", of(&SERVER_WAITING)),
        Panel::lines(
            "percentunit",
            "KV cache",
            "Occupancy of the servers' KV caches.",
        )
        .query("{{target}}", of(&SERVER_KV_USAGE)),
        Panel::lines(
            "s",
            "Certificates expire in",
            "Time until the certificate of the last new connection expires.",
        )
        .query(
            "{{target}} {{endpoint}}",
            format!(
                "min by (target, endpoint) ({}{CHOSEN}) - time()",
                CERTIFICATE_EXPIRY.prometheus
            ),
        )
        .below_zero(),
    ]
}

fn budgets() -> Vec<Panel> {
    let sum = |metric: &Metric| format!("sum({})", metric.prometheus);
    vec![
        Panel::lines("none", "Requests of the day", "Sent since midnight UTC, and the most that may be.")
            .query("used", sum(&BUDGET_REQUESTS_USED))
            .query("limit", sum(&BUDGET_REQUESTS_LIMIT))
            .dashed("limit"),
        Panel::lines("none", "Tokens of the day", "Input and output since midnight UTC, reserved ones included, and the most that may be.")
            .query("used", sum(&BUDGET_TOKENS_USED))
            .query("limit", sum(&BUDGET_TOKENS_LIMIT))
            .dashed("limit"),
        Panel::new(Kind::Stacked, "reqps", "Held back", "Requests that were due and not sent, by reason.")
            .query("{{reason}}", query::rate(&ARRIVALS_REFUSED, CHOSEN, &["reason"])),
        Panel::lines("none", "In flight", "Our own requests in flight at each target, and the most that may be.")
            .query("{{target}}", format!("sum by (target) ({}{TARGET})", IN_FLIGHT.prometheus))
            .query("limit of {{target}}", format!("sum by (target) ({}{TARGET})", IN_FLIGHT_LIMIT.prometheus))
            .dashed("/^limit of/"),
    ]
}
