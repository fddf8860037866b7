//! Tests of the page: what it says of hand-made records, in each format.

use std::sync::Arc;

use prost::Message;

use super::message::{self, MetricType};
use super::*;
use crate::aggregate::fixture::{self, RULES, failed, ms, ok, refused};
use crate::aggregate::{ExportedSpan, Live, StreamRules};
use crate::export::catalog;
use crate::measurement::{
    KnownKind, Outcome, RefusedReason, Slo, SloLimit, SloMetric, Stream, TraceIds, Wanted,
};
use crate::telemetry::SelfMetrics;

mod open_metrics;
mod speed;

/// One stream with two good requests, a failure and two refusals.
fn live(stream: &Arc<Stream>) -> Live {
    let mut live = Live::new(vec![(Arc::clone(stream), RULES)], 1);
    for observed in [
        ok(stream, 1_000, &[250, 260, 270]),
        ok(stream, 2_000, &[500, 520, 540]),
        failed(stream, 3_000, Outcome::HttpStatus, Some(503)),
        refused(stream, 4_000, RefusedReason::InFlight),
        refused(stream, 5_000, RefusedReason::Budget),
    ] {
        live.observe(Arc::new(observed), None);
    }
    live
}

/// When the run of these pages began.
const STARTED: u64 = 1_795_953_601_000_000_000;

fn page_of(format: Format, live: &Live, gauges: &[Gauge]) -> Vec<u8> {
    let view = View {
        live,
        gauges,
        own: &[],
        started_unix_ns: STARTED,
    };
    render(format, &view)
}

fn text_of(live: &Live, gauges: &[Gauge]) -> String {
    String::from_utf8(page_of(Format::Text, live, gauges)).expect("a page is UTF-8")
}

/// The values of the samples of `metric`, each with what of its labels comes after the stream's.
fn samples<'a>(page: &'a str, metric: &str) -> Vec<(&'a str, &'a str)> {
    let lines = page.lines().filter(|line| line.starts_with(metric));
    lines
        .map(|line| {
            let (series, value) = line.split_once("} ").expect("labels and a value");
            let (_, own) = series
                .split_once("connection=\"pooled\"")
                .expect("stream labels");
            (own.trim_start_matches(','), value)
        })
        .collect()
}

fn families(page: &[u8]) -> Vec<message::MetricFamily> {
    let mut rest = page;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let family = message::MetricFamily::decode_length_delimited(&mut rest);
        found.push(family.expect("each family is whole"));
    }
    found
}

fn lines_of<'a>(page: &'a str, metric: &str) -> Vec<&'a str> {
    page.lines().filter(|line| line.contains(metric)).collect()
}

#[test]
fn counters_in_text() {
    let page = text_of(&live(&fixture::stream(0)), &[]);
    let labels =
        r#"target="t",endpoint="http://t:1",probe="p",api="chat",cache="cold",connection="pooled""#;
    let line = |outcome: &str, status: &str, count: u64| {
        let status = match status {
            "" => String::new(),
            code => format!(",http_response_status_code=\"{code}\""),
        };
        format!("tokencanary_requests_total{{{labels},outcome=\"{outcome}\"{status}}} {count}")
    };
    assert_eq!(
        lines_of(&page, "tokencanary_requests_total"),
        [
            "# HELP tokencanary_requests_total Records by what became of them".to_owned(),
            "# TYPE tokencanary_requests_total counter".to_owned(),
            line("ok", "200", 2),
            line("dns", "", 0),
            line("connect", "", 0),
            line("tls", "", 0),
            line("timeout_connect", "", 0),
            line("timeout_first_token", "", 0),
            line("timeout_gap", "200", 0),
            line("timeout_total", "", 0),
            line("stream_cut", "200", 0),
            line("stream_error", "200", 0),
            line("not_a_stream", "200", 0),
            line("malformed", "200", 0),
            line("empty", "200", 0),
            line("refused", "", 2),
            line("cancelled", "", 0),
            line("http_status", "503", 1),
        ],
        "what can be foreseen is there from the start"
    );
    assert_eq!(
        lines_of(&page, "tokencanary_arrivals_total{"),
        [format!("tokencanary_arrivals_total{{{labels}}} 5")]
    );
    assert_eq!(
        lines_of(&page, "tokencanary_arrivals_refused_total{"),
        [
            format!("tokencanary_arrivals_refused_total{{{labels},reason=\"in_flight\"}} 1"),
            format!("tokencanary_arrivals_refused_total{{{labels},reason=\"budget\"}} 1"),
            format!("tokencanary_arrivals_refused_total{{{labels},reason=\"shutdown\"}} 0"),
            format!("tokencanary_arrivals_refused_total{{{labels},reason=\"own_lag\"}} 0"),
            format!("tokencanary_arrivals_refused_total{{{labels},reason=\"own_limit\"}} 0"),
        ]
    );
    assert_eq!(
        lines_of(&page, "tokencanary_tokens_total{"),
        [
            format!("tokencanary_tokens_total{{{labels},type=\"input\"}} 40"),
            format!("tokencanary_tokens_total{{{labels},type=\"output\"}} 6"),
        ]
    );
}

#[test]
fn a_histogram_in_text() {
    let page = text_of(&live(&fixture::stream(0)), &[]);
    let shown: Vec<(&str, &str)> = lines_of(&page, "tokencanary_request_ttft_or_failure_seconds")
        .into_iter()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("a sample has a value");
            let from = series.find("connection=\"pooled\"").expect("stream labels");
            (&series[from + 19..], value)
        })
        .collect();
    assert_eq!(shown.len(), 33);
    assert_eq!(shown[0], (",le=\"0.00390625\"}", "0"));
    assert_eq!(shown[11], (",le=\"0.1767766952966369\"}", "0"));
    assert_eq!(shown[12], (",le=\"0.25\"}", "1"));
    assert_eq!(shown[13], (",le=\"0.3535533905932738\"}", "1"));
    assert_eq!(shown[14], (",le=\"0.5\"}", "2"));
    assert_eq!(shown[29], (",le=\"90.50966799187809\"}", "2"));
    assert_eq!(shown[30], (",le=\"+Inf\"}", "4"));
    assert_eq!(shown[31], ("}", "0.75"));
    assert_eq!(shown[32], ("}", "4"));
}

#[test]
fn a_histogram_in_protobuf_is_native_and_classic() {
    let live = live(&fixture::stream(0));
    let families = families(&page_of(Format::Protobuf, &live, &[]));
    let family = families
        .iter()
        .find(|family| family.name == "tokencanary_request_ttft_or_failure_seconds")
        .expect("it is shown");
    assert_eq!(family.r#type, i32::from(MetricType::Histogram));
    let [metric] = family.metric.as_slice() else {
        panic!("one stream is one series");
    };
    let labels: Vec<(&str, &str)> = metric
        .label
        .iter()
        .map(|label| (label.name.as_str(), label.value.as_str()))
        .collect();
    assert_eq!(labels.len(), 6, "the model is not known");
    assert_eq!(labels[0], ("target", "t"));
    let shown = metric.histogram.as_ref().expect("a histogram");
    assert_eq!(shown.sample_count, 4);
    assert!((shown.sample_sum - 0.75).abs() < 1e-12);
    assert_eq!(shown.schema, 5);
    assert!((shown.zero_threshold * 1_048_576.0 - 1.0).abs() < 1e-12);
    assert_eq!(shown.zero_count, 0);
    let spans: Vec<(i32, u32)> = shown
        .positive_span
        .iter()
        .map(|span| (span.offset, span.length))
        .collect();
    // 0.25 is 2^(-64/32), 0.5 is 2^(-32/32), the two failures are in bucket 640.
    assert_eq!(spans, [(-64, 1), (31, 1), (671, 1)]);
    assert_eq!(shown.positive_delta, [1, 0, 1]);
    assert_eq!(shown.bucket.len(), 31);
    assert_eq!(shown.bucket[12].cumulative_count, 1);
    assert_eq!(shown.bucket[14].cumulative_count, 2);
    let last = &shown.bucket[30];
    assert!(last.upper_bound.is_infinite());
    assert_eq!(last.cumulative_count, 4);
}

#[test]
fn tags_are_those_of_the_definition() {
    let family = message::MetricFamily {
        name: "n".to_owned(),
        help: "h".to_owned(),
        r#type: MetricType::Histogram.into(),
        metric: vec![message::Metric {
            histogram: Some(message::Histogram {
                sample_count: 3,
                schema: 5,
                zero_count: 1,
                positive_span: vec![message::BucketSpan {
                    offset: -1,
                    length: 2,
                }],
                positive_delta: vec![1, -1],
                ..message::Histogram::default()
            }),
            ..message::Metric::default()
        }],
        unit: String::new(),
    };
    let histogram = [
        0x08, 3, // 1: sample count
        0x28, 10, // 5: schema, zigzag
        0x38, 1, // 7: zero count
        0x62, 4, 0x08, 1, 0x10, 2, // 12: span, offset zigzag, length
        0x6a, 2, 2, 1, // 13: deltas, packed, zigzag
    ];
    let mut wanted = vec![0x0a, 1, b'n', 0x12, 1, b'h', 0x18, 4, 0x22, 18, 0x3a, 16];
    wanted.extend(histogram);
    assert_eq!(family.encode_to_vec(), wanted);
}

#[test]
fn streams_beyond_the_cap_are_counted_and_not_shown() {
    let streams = (0..1_001).map(|id| (fixture::stream(id), RULES));
    let mut live = Live::new(streams.collect(), 1);
    live.observe(Arc::new(ok(&fixture::stream(999), 0, &[10])), None);
    live.observe(Arc::new(ok(&fixture::stream(1_000), 0, &[10])), None);
    let page = text_of(&live, &[]);
    let shown = samples(&page, "tokencanary_arrivals_total{");
    assert_eq!(shown.len(), 1_000);
    assert_eq!(shown[999], ("", "1"));
    assert!(page.contains("\ntokencanary_streams_left_out 1\n"));
    let few = text_of(&Live::new(Vec::new(), 0), &[]);
    assert!(few.contains("\ntokencanary_streams_left_out 0\n"));
}

#[test]
fn labels_and_help_are_escaped() {
    let gauges = [Gauge {
        metric: &catalog::SERVER_KV_USAGE,
        labels: vec![("target", "a\\b\"c\nd".to_owned())],
        value: 0.41,
    }];
    let page = text_of(&Live::new(Vec::new(), 0), &gauges);
    assert_eq!(
        lines_of(&page, "kv_usage"),
        [
            "# HELP tokencanary_server_kv_usage_ratio Occupancy of the server's KV cache",
            "# TYPE tokencanary_server_kv_usage_ratio gauge",
            r#"tokencanary_server_kv_usage_ratio{target="a\\b\"c\nd"} 0.41"#,
        ]
    );
}

#[test]
fn the_model_is_a_label_once_it_is_known() {
    let stream = fixture::stream(0);
    let live = live(&stream);
    assert!(!text_of(&live, &[]).contains("model="));
    stream.model.set("m-1".into()).expect("not set before");
    assert!(text_of(&live, &[]).contains(r#"probe="p",model="m-1",api="chat""#));
}

#[test]
fn every_name_is_in_the_catalog_and_formats_agree() {
    let own = SelfMetrics::new().expect("names do not collide");
    own.export("spans").accepted.inc();
    own.scrapes("t", "ok").inc();
    let gathered = own.gather();
    let mut live = live(&fixture::stream(0));
    live.settle(ms(60_000), ms(60_000));
    let gauges: Vec<Gauge> = catalog::ALL
        .iter()
        .filter(|metric| metric.kind == catalog::Kind::Gauge)
        .filter(|metric| metric.scope != catalog::Scope::Program)
        .map(|metric| Gauge {
            metric,
            labels: vec![("target", "t".to_owned())],
            value: 1.0,
        })
        .collect();
    let view = View {
        live: &live,
        gauges: &gauges,
        own: &gathered,
        started_unix_ns: STARTED,
    };
    let families = families(&render(Format::Protobuf, &view));
    for family in &families {
        let metric = catalog::ALL
            .iter()
            .find(|metric| metric.prometheus == family.name)
            .unwrap_or_else(|| panic!("`{}` is not in the catalog", family.name));
        let wanted = match metric.kind {
            catalog::Kind::Counter => MetricType::Counter,
            catalog::Kind::Gauge => MetricType::Gauge,
            catalog::Kind::Histogram(_) => MetricType::Histogram,
        };
        assert_eq!(family.r#type, i32::from(wanted), "type of {}", family.name);
        assert_eq!(family.help, metric.help, "help of {}", family.name);
        for label in family.metric.iter().flat_map(|series| &series.label) {
            let known = metric.labels.contains(&label.name.as_str())
                || catalog::STREAM_LABELS.contains(&label.name.as_str());
            assert!(known, "label `{}` of `{}`", label.name, family.name);
        }
    }
    for own in &gathered {
        let shown = families.iter().any(|family| family.name == own.name());
        assert!(shown, "`{}` of our own registry is left out", own.name());
    }
    let text = String::from_utf8(render(Format::Text, &view)).expect("a page is UTF-8");
    let typed: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let named: Vec<&str> = families.iter().map(|family| family.name.as_str()).collect();
    assert_eq!(typed, named);
}

#[test]
fn questions_are_counted_where_they_are_asked() {
    let stream = fixture::stream(0);
    let rules = StreamRules {
        knows_answers: true,
        ..RULES
    };
    let mut live = Live::new(vec![(Arc::clone(&stream), rules)], 1);
    let wanted = Wanted {
        kind: KnownKind::Counting,
        answer: "7".into(),
    };
    let counts = |live: &Live| {
        let page = text_of(live, &[]);
        let found = samples(&page, "tokencanary_known_answers_total");
        let of = |result: &str| {
            let label = format!("result=\"{result}\"");
            let sample = found.iter().find(|(labels, _)| *labels == label);
            sample.map(|(_, value)| (*value).to_owned())
        };
        ["right", "wrong", "unjudged"].map(of)
    };
    let shown = |counts: [&str; 3]| counts.map(|count| Some(count.to_owned()));
    assert_eq!(counts(&live), shown(["0", "0", "0"]), "from the start");
    for (reply, mut observed) in [
        (Some("7"), ok(&stream, 1_000, &[250])),
        (Some("It is 7."), ok(&stream, 2_000, &[250])),
        (Some("8"), ok(&stream, 3_000, &[250])),
        (None, refused(&stream, 4_000, RefusedReason::Budget)),
    ] {
        observed.record.answer = Some(wanted.clone().unjudged());
        observed.record.reply = reply.map(Box::from);
        observed.record.judge();
        live.observe(Arc::new(observed), None);
    }
    assert_eq!(counts(&live), shown(["2", "1", "1"]));
    let others = text_of(&self::live(&fixture::stream(0)), &[]);
    assert_eq!(samples(&others, "tokencanary_known_answers_total"), []);
}
