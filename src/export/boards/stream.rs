//! The board of one stream: where the time of its requests goes, and what its server did
//! meanwhile, on one time axis.

use serde_json::json;

use super::Board;
use super::board::{Head, Row, build, one_stream};
use super::panel::{Kind, Panel};
use super::query::{self, STREAM, TARGET, WINDOW};
use super::slo;
use crate::export::catalog::{
    ARRIVALS_REFUSED, CHUNK_GAP, CONNECT_TIME, CONNECTIONS_REPLACED, IN_FLIGHT, ITL, KNOWN_ANSWERS,
    Metric, OUTPUT_LENGTH, OUTPUT_RATE, REQUESTS, RESPONSE_TIME, RESPONSE_TIME_OR_FAILURE,
    RESPONSE_TTFT, RESPONSES_NOTED, SERVER_KV_USAGE, SERVER_RUNNING, SERVER_SAMPLE_AGE,
    SERVER_WAITING, SERVICE_TIME, SLOT_WAIT, STALLS, TOKENS, TTFO, TTFT, TTFT_OR_FAILURE,
};
use crate::export::rules::{Quantile, recorded};

pub(super) fn board() -> Board {
    let head = Head {
        name: "stream",
        title: "tokencanary / Stream",
        description: "One stream in depth, with the state of its server below on the same time axis.",
    };
    let row = |title, panels| Row { title, panels };
    let rows = [
        row("Latency", latency()),
        row("Distributions", distributions()),
        row("Outcomes", outcomes()),
        row("Parts of a request", parts()),
        row("Tokens", tokens()),
        row("Server", server()),
        row("Objectives", slo::panels(STREAM, "")),
    ];
    build(&head, &one_stream(), &rows)
}

/// Quantiles of `judged` with the band of what is normal.
fn with_baseline(panel: Panel, judged: &Metric) -> Panel {
    let normal = |reduce: &str, operation: &str| {
        format!("{reduce}({}{STREAM})", recorded(judged, operation))
    };
    panel
        .query("normal, high", normal("max", "p95_baseline_high"))
        .query("normal, low", normal("min", "p95_baseline_low"))
        .query("normal p95", normal("max", "p95_baseline"))
        .band("normal, low", "normal, high")
        .series(
            "normal p95",
            &[
                ("color", json!({ "mode": "fixed", "fixedColor": "green" })),
                (
                    "custom.lineStyle",
                    json!({ "fill": "dash", "dash": [10, 10] }),
                ),
            ],
        )
}

fn latency() -> Vec<Panel> {
    let quantiles = |title, metric: &Metric| {
        let description = format!(
            "{}. The band is where the p95 was in 80 % of the last day, as the rules record it. Dots are single requests: their trace is one click away.",
            metric.help
        );
        Panel::lines("s", title, &description).quantiles(metric, STREAM)
    };
    vec![
        with_baseline(quantiles("TTFT", &TTFT), &TTFT_OR_FAILURE).wide(12),
        with_baseline(quantiles("ITL", &ITL), &ITL).wide(12),
        Panel::lines("s", "Response time", "From when a request was due to its last token. With failures as never, the line is at the top when more than 5 % fail.")
            .quantiles(&RESPONSE_TIME, STREAM)
            .quantile(("p95, failures as never", Quantile::P95), (&RESPONSE_TIME_OR_FAILURE, STREAM), &[]),
        Panel::lines("s", "TTFT, failures as never", "Time to the first token where a failed request counts as infinite. Alerts look at this.")
            .quantiles(&TTFT_OR_FAILURE, STREAM),
        Panel::lines("s", "TTFO", TTFO.help)
            .quantiles(&TTFO, STREAM),
    ]
}

fn distributions() -> Vec<Panel> {
    vec![
        Panel::heatmap("TTFT", &TTFT, STREAM),
        Panel::heatmap("ITL", &ITL, STREAM),
        Panel::heatmap("Chunk gaps", &CHUNK_GAP, STREAM),
        Panel::heatmap("Service time", &SERVICE_TIME, STREAM),
    ]
}

fn outcomes() -> Vec<Panel> {
    let stacked = |unit, title, description| Panel::new(Kind::Stacked, unit, title, description);
    vec![
        stacked("reqps", "Outcomes", "What became of each request that was due.")
            .query("{{outcome}} {{http_response_status_code}}", query::rate(&REQUESTS, STREAM, &["outcome", "http_response_status_code"])),
        Panel::lines("none", "Stalls per request", "Chunk gaps far above the median gap of their own request, for each request that was due.")
            .query("stalls", format!("{} / {}", query::rate(&STALLS, STREAM, &[]), query::rate(&REQUESTS, STREAM, &[]))),
        stacked("reqps", "Held back", "Requests that were due and not sent, by reason.")
            .query("{{reason}}", query::rate(&ARRIVALS_REFUSED, STREAM, &["reason"])),
        Panel::lines("reqps", "Odd responses", "Responses that were odd in some way, by what was noted.")
            .query("{{note}}", format!("{} > 0", query::rate(&RESPONSES_NOTED, STREAM, &["note"]))),
        stacked("reqps", "Known answers", "Questions of known answer, by what their answers were worth: a model that answered rightly and no longer does has changed.")
            .query("{{result}}", query::rate(&KNOWN_ANSWERS, STREAM, &["result"])),
        Panel::lines("cps", "Connections replaced", "Pooled connections that the server had closed when a request was written on them.")
            .query("replaced", query::rate(&CONNECTIONS_REPLACED, STREAM, &[])),
    ]
}

fn parts() -> Vec<Panel> {
    let quantiles =
        |title, metric: &Metric| Panel::lines("s", title, metric.help).quantiles(metric, STREAM);
    vec![
        quantiles("Waiting for a slot", &SLOT_WAIT),
        quantiles("Connecting", &CONNECT_TIME),
        quantiles("TTFT from when it was due", &RESPONSE_TTFT),
        quantiles("Service time", &SERVICE_TIME),
        quantiles("Chunk gaps", &CHUNK_GAP),
    ]
}

fn tokens() -> Vec<Panel> {
    let length = |of: &str| {
        let selector = STREAM.replace('}', &format!(", of=\"{of}\"}}"));
        query::increase(&OUTPUT_LENGTH, &selector, &[])
    };
    vec![
        Panel::lines("none", "Output tokens per second of one request", OUTPUT_RATE.help)
            .quantiles(&OUTPUT_RATE, STREAM),
        Panel::new(Kind::Stacked, "none", "Tokens per second", "Input and output tokens of this stream, as the server counted them.")
            .query("{{type}}", query::rate(&TOKENS, STREAM, &["type"])),
        Panel::lines("percentunit", "Answers as long as asked", "Output tokens delivered for each asked for. Where it moves, requests cannot be compared with earlier ones.")
            .query("delivered / requested", format!("{} / ({} > 0)", length("delivered"), length("requested"))),
    ]
}

fn server() -> Vec<Panel> {
    let of = |metric: &Metric| format!("max({}{TARGET})", metric.prometheus);
    vec![
        Panel::lines(
            "none",
            "Running and waiting",
            "Requests the server says it executes and queues; and ours among them.",
        )
        .query("running", of(&SERVER_RUNNING))
        .query("waiting", of(&SERVER_WAITING))
        .query("ours in flight", of(&IN_FLIGHT)),
        Panel::lines("percentunit", "KV cache", SERVER_KV_USAGE.help)
            .query("used", of(&SERVER_KV_USAGE)),
        Panel::lines(
            "s",
            "Age of the server's state",
            "Time since the server's metrics page was last read; what is too old is not shown.",
        )
        .query(
            "age",
            format!(
                "max(max_over_time({}{TARGET}[{WINDOW}]))",
                SERVER_SAMPLE_AGE.prometheus
            ),
        ),
    ]
}
