//! What `OpenMetrics` adds, and what objectives and exemplars look like in each format.

use std::time::Duration;

use super::*;
use crate::measurement::Observed;

const fn at_most(ms: u64, objective: f64) -> SloLimit {
    SloLimit {
        at_most: Duration::from_millis(ms),
        objective: Some(objective),
    }
}

/// TTFT within 300 ms, which is no bound of the grid; ITL within 15 ms.
const SLO: Slo = Slo::NONE
    .with_limit(SloMetric::Ttft, at_most(300, 0.95))
    .with_limit(SloMetric::Itl, at_most(15, 0.9))
    .with_success(0.99);

/// The span of a request that ended `ms` after the run began.
fn span(trace: u128, span: u64, ms: u64) -> ExportedSpan {
    ExportedSpan {
        ids: TraceIds { trace, span },
        unix_ns: STARTED + ms * 1_000_000,
    }
}

/// Three good requests and a failure; TTFT 250, 299 and 310 ms.
fn held(stream: &Arc<Stream>) -> Live {
    let rules = StreamRules { slo: SLO, ..RULES };
    let mut live = Live::new(vec![(Arc::clone(stream), rules)], 1);
    let records: [(Observed, ExportedSpan); 4] = [
        (ok(stream, 1_000, &[250, 260, 270]), span(0xa1, 0xb1, 1_271)),
        (ok(stream, 2_000, &[299, 309, 319]), span(0xa2, 0xb2, 2_320)),
        (ok(stream, 3_000, &[310, 330, 350]), span(0xa3, 0xb3, 3_351)),
        (
            failed(stream, 4_000, Outcome::HttpStatus, Some(503)),
            span(0xa4, 0xb4, 4_011),
        ),
    ];
    for (observed, span) in records {
        live.observe(Arc::new(observed), Some(span));
    }
    live
}

fn open_metrics_of(live: &Live, gauges: &[Gauge]) -> String {
    String::from_utf8(page_of(Format::OpenMetrics, live, gauges)).expect("a page is UTF-8")
}

#[test]
fn objectives_are_counted_beside_their_limits() {
    let page = text_of(&held(&fixture::stream(0)), &[]);
    assert_eq!(
        samples(&page, "tokencanary_slo_good_total"),
        [
            ("slo=\"ttft\"", "2"),
            ("slo=\"itl\"", "2"),
            ("slo=\"success\"", "3"),
            ("slo=\"all\"", "2"),
        ]
    );
    assert_eq!(
        samples(&page, "tokencanary_slo_events_total"),
        [
            ("slo=\"ttft\"", "4"),
            ("slo=\"itl\"", "4"),
            ("slo=\"success\"", "4"),
            ("slo=\"all\"", "4"),
        ]
    );
    assert_eq!(
        samples(&page, "tokencanary_slo_objective_ratio"),
        [
            ("slo=\"ttft\"", "0.95"),
            ("slo=\"itl\"", "0.9"),
            ("slo=\"success\"", "0.99"),
        ]
    );
    assert_eq!(
        samples(&page, "tokencanary_slo_limit_seconds"),
        [("slo=\"ttft\"", "0.3"), ("slo=\"itl\"", "0.015")]
    );
}

#[test]
fn a_limit_is_a_bound_and_what_stands_there_is_exact() {
    let live = held(&fixture::stream(0));
    let page = text_of(&live, &[]);
    for (metric, all) in [
        ("tokencanary_request_ttft_seconds", "3"),
        ("tokencanary_request_ttft_or_failure_seconds", "4"),
    ] {
        let buckets = samples(&page, &format!("{metric}_bucket"));
        assert_eq!(buckets.len(), 32, "30 of the grid, the limit, +Inf");
        assert_eq!(
            buckets[12..15],
            [
                ("le=\"0.25\"", "1"),
                ("le=\"0.3\"", "2"),
                ("le=\"0.3535533905932738\"", "3"),
            ]
        );
        assert_eq!(buckets[31], ("le=\"+Inf\"", all));
    }
    assert_eq!(
        samples(&page, "tokencanary_request_ttfo_seconds_bucket").len(),
        31,
        "no limit of it"
    );
    let families = families(&page_of(Format::Protobuf, &live, &[]));
    let ttft = families
        .iter()
        .find(|family| family.name == "tokencanary_request_ttft_seconds")
        .and_then(|family| family.metric[0].histogram.as_ref())
        .expect("it is shown");
    assert_eq!(ttft.bucket.len(), 32);
    assert!((ttft.bucket[13].upper_bound - 0.3).abs() < 1e-12);
    assert_eq!(ttft.bucket[13].cumulative_count, 2);
}

#[test]
fn a_family_says_what_it_is_and_when_it_began() {
    let gauges = [Gauge {
        metric: &catalog::TARGET_INFO,
        labels: vec![("service_name", "tokencanary".to_owned())],
        value: 1.0,
    }];
    let page = open_metrics_of(&held(&fixture::stream(0)), &gauges);
    let of = |start: &str| -> Vec<&str> {
        let lines = page.lines().filter(|line| line.contains(start));
        lines.filter(|line| line.starts_with('#')).collect()
    };
    assert_eq!(
        of("tokencanary_arrivals "),
        [
            "# TYPE tokencanary_arrivals counter",
            "# HELP tokencanary_arrivals Requests that were due; each ends as exactly one record",
        ]
    );
    assert_eq!(
        of("tokencanary_slo_limit_seconds "),
        [
            "# TYPE tokencanary_slo_limit_seconds gauge",
            "# UNIT tokencanary_slo_limit_seconds seconds",
            "# HELP tokencanary_slo_limit_seconds The most that a latency of a good request may be",
        ]
    );
    assert_eq!(of("# TYPE target"), ["# TYPE target info"]);
    assert!(page.contains("\ntarget_info{service_name=\"tokencanary\"} 1\n"));
    assert_eq!(samples(&page, "tokencanary_arrivals_total"), [("", "4")]);
    assert_eq!(
        samples(&page, "tokencanary_arrivals_created"),
        [("", "1795953601.000")]
    );
    assert_eq!(
        samples(&page, "tokencanary_request_itl_seconds_created"),
        [("", "1795953601.000")]
    );
    assert!(!page.contains("tokencanary_slo_limit_seconds_created"));
    assert!(page.ends_with("\n# EOF\n"));
    assert_eq!(page.matches("# EOF").count(), 1);
    let text = text_of(&held(&fixture::stream(0)), &gauges);
    assert!(text.contains("\n# TYPE target_info gauge\n"));
    assert!(!text.contains("_created") && !text.contains("# EOF") && !text.contains("trace_id"));
}

#[test]
fn exemplars_stand_in_their_own_buckets() {
    let page = open_metrics_of(&held(&fixture::stream(0)), &[]);
    let with: Vec<(&str, &str)> = samples(&page, "tokencanary_request_ttft_or_failure_seconds")
        .into_iter()
        .filter(|(_, value)| value.contains('#'))
        .collect();
    let ids = |trace: &str, span: &str| {
        format!(
            "# {{trace_id=\"{}{trace}\",span_id=\"{}{span}\"}}",
            "0".repeat(30),
            "0".repeat(14)
        )
    };
    assert_eq!(with.len(), 4, "{with:?}");
    // The value of a sample ends at the first `} `, so that what follows begins with the rest.
    let lines: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("tokencanary_request_ttft_or_failure_seconds_bucket"))
        .filter(|line| line.contains('#'))
        .collect();
    for (line, (le, count, exemplar)) in lines.iter().zip([
        (
            "0.25",
            1,
            format!("{} 0.25 1795953602.271", ids("a1", "b1")),
        ),
        (
            "0.3",
            2,
            format!("{} 0.299 1795953603.320", ids("a2", "b2")),
        ),
        (
            "0.3535533905932738",
            3,
            format!("{} 0.31 1795953604.351", ids("a3", "b3")),
        ),
        (
            "+Inf",
            4,
            format!("{} +Inf 1795953605.011", ids("a4", "b4")),
        ),
    ]) {
        let end = format!("le=\"{le}\"}} {count} {exemplar}");
        assert!(line.ends_with(&end), "{line}\n{end}");
    }
    assert!(
        !page
            .lines()
            .any(|line| line.starts_with("tokencanary_request_ttfo") && line.contains('#')),
        "none are kept of it"
    );
}

#[test]
fn protobuf_has_exemplars_on_both_kinds_of_buckets_and_says_when_it_began() {
    let families = families(&page_of(Format::Protobuf, &held(&fixture::stream(0)), &[]));
    let of = |name: &str| {
        let mut found = families.iter().filter(|family| family.name == name);
        found.next().expect("it is shown")
    };
    let began = Some(message::Timestamp {
        seconds: 1_795_953_601,
        nanos: 0,
    });
    let family = of("tokencanary_request_response_time_seconds");
    assert_eq!(family.unit, "seconds");
    let shown = family.metric[0].histogram.as_ref().expect("a histogram");
    assert_eq!(shown.created_timestamp, began);
    let values: Vec<f64> = shown.exemplars.iter().map(|one| one.value).collect();
    assert_eq!(values.len(), 3);
    // Due 1 ms before the start, so 271, 320 and 351 ms.
    for (value, wanted) in values.iter().zip([0.271, 0.320, 0.351]) {
        assert!((value - wanted).abs() < 1e-12, "{value}");
    }
    let labels: Vec<(&str, &str)> = shown.exemplars[0]
        .label
        .iter()
        .map(|label| (label.name.as_str(), label.value.as_str()))
        .collect();
    assert_eq!(
        labels,
        [
            ("trace_id", "000000000000000000000000000000a1"),
            ("span_id", "00000000000000b1"),
        ]
    );
    assert_eq!(
        shown.exemplars[0].timestamp,
        Some(message::Timestamp {
            seconds: 1_795_953_602,
            nanos: 271_000_000,
        })
    );
    // All three lie between 2^-2 and 2^-1.5; the classic bucket shows the newest.
    let classic: Vec<(f64, f64)> = shown
        .bucket
        .iter()
        .filter_map(|bucket| Some((bucket.upper_bound, bucket.exemplar.as_ref()?.value)))
        .collect();
    assert_eq!(classic.len(), 1);
    assert!((classic[0].0 - 0.353_553_390_593_273_8).abs() < 1e-12);
    assert!((classic[0].1 - 0.351).abs() < 1e-12);
    let counter = of("tokencanary_arrivals_total").metric[0].counter.as_ref();
    assert_eq!(counter.expect("a counter").created_timestamp, began);
    assert!(
        of("tokencanary_request_ttfo_seconds").metric[0]
            .histogram
            .as_ref()
            .is_some_and(|shown| shown.exemplars.is_empty())
    );
}

#[test]
fn what_sends_no_spans_has_no_exemplars() {
    let page = open_metrics_of(&live(&fixture::stream(0)), &[]);
    assert!(!page.contains("trace_id"));
}
