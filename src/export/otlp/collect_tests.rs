//! What the live state looks like as OTLP metrics; expected values are counted by hand.

use std::sync::Arc;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogramDataPoint, Metric, NumberDataPoint,
};

use super::collect::{Batch, Collector};
use super::fixture::config;
use crate::aggregate::fixture::{RULES, failed, ok, stream};
use crate::aggregate::{ExportedSpan, Live};
use crate::config::{Conventions, HistogramForm, OtlpConfig, Temporality};
use crate::export::catalog;
use crate::export::prometheus::{Gauge, View};
use crate::measurement::{Observed, Outcome};
use crate::telemetry::SelfMetrics;

const STARTED: u64 = 1_000;

fn live(records: Vec<Observed>) -> Live {
    let mut live = Live::new(vec![(stream(0), RULES)], 1);
    add(&mut live, records);
    live
}

fn add(live: &mut Live, records: Vec<Observed>) {
    for observed in records {
        let ids = observed.record.ids;
        let unix_ns = 4_000;
        live.observe(Arc::new(observed), Some(ExportedSpan { ids, unix_ns }));
    }
}

/// Two good requests of TTFT 100 ms and 200 ms, and one that was answered 503.
fn records() -> Vec<Observed> {
    let stream = stream(0);
    vec![
        ok(&stream, 0, &[100, 150, 200]),
        ok(&stream, 1_000, &[200, 250]),
        failed(&stream, 2_000, Outcome::HttpStatus, Some(503)),
    ]
}

fn collector(config: &OtlpConfig) -> Collector {
    let resource = vec![("service.name".to_owned(), "tokencanary".to_owned())];
    Collector::new(config, resource, STARTED)
}

fn collect(collector: &Collector, live: &Live, at: u64) -> Vec<Batch> {
    let own = SelfMetrics::new().expect("the metrics do not collide");
    own.export("otlp_traces").sent.inc_by(7);
    let gathered = own.gather();
    let gauges = [Gauge {
        metric: &catalog::IN_FLIGHT,
        labels: vec![("target", "t".to_owned())],
        value: 3.0,
    }];
    let view = View {
        live,
        gauges: &gauges,
        own: &gathered,
        started_unix_ns: STARTED,
    };
    collector.collect(&view, at)
}

fn metrics(batches: &[Batch]) -> Vec<Metric> {
    batches
        .iter()
        .flat_map(|batch| &batch.request.resource_metrics)
        .flat_map(|resource| &resource.scope_metrics)
        .flat_map(|scope| scope.metrics.clone())
        .collect()
}

fn find<'a>(metrics: &'a [Metric], name: &str) -> &'a Metric {
    let mut found = metrics.iter().filter(|metric| metric.name == name);
    let metric = found.next().unwrap_or_else(|| panic!("no `{name}`"));
    assert!(found.next().is_none(), "`{name}` twice");
    metric
}

fn exponential<'a>(metrics: &'a [Metric], name: &str) -> &'a [ExponentialHistogramDataPoint] {
    match &find(metrics, name).data {
        Some(Data::ExponentialHistogram(histogram)) => &histogram.data_points,
        other => panic!("{name}: {other:?}"),
    }
}

fn sums<'a>(metrics: &'a [Metric], name: &str) -> (&'a [NumberDataPoint], i32) {
    match &find(metrics, name).data {
        Some(Data::Sum(sum)) => {
            assert!(sum.is_monotonic);
            (&sum.data_points, sum.aggregation_temporality)
        }
        other => panic!("{name}: {other:?}"),
    }
}

fn attributes(pairs: &[KeyValue]) -> Vec<String> {
    pairs
        .iter()
        .map(
            |pair| match pair.value.clone().and_then(|value| value.value) {
                Some(Any::StringValue(text)) => format!("{}={text}", pair.key),
                Some(Any::IntValue(number)) => format!("{}:{number}", pair.key),
                other => panic!("{other:?}"),
            },
        )
        .collect()
}

/// The counts of `name` by their last attribute, those of 0 left out.
fn counts(metrics: &[Metric], name: &str) -> Vec<(String, i64)> {
    let (points, _) = sums(metrics, name);
    points
        .iter()
        .filter_map(|point| match point.value {
            Some(Number::AsInt(count)) => {
                let last = attributes(&point.attributes).pop()?;
                (count > 0).then_some((last, count))
            }
            _ => None,
        })
        .collect()
}

const STREAM: [&str; 6] = [
    "target=t",
    "endpoint=http://t:1",
    "probe=p",
    "api=chat",
    "cache=cold",
    "connection=pooled",
];

#[test]
fn a_histogram_has_our_name_our_unit_and_all_that_was_measured() {
    let metrics = metrics(&collect(&collector(&config()), &live(records()), 5_000));
    let metric = find(&metrics, "tokencanary.request.ttft");
    assert_eq!(metric.unit, "s");
    assert_eq!(
        metric.description,
        "Time from start to the first token of any channel, ok requests"
    );
    let [point] = exponential(&metrics, "tokencanary.request.ttft") else {
        panic!("one stream");
    };
    assert_eq!(attributes(&point.attributes), STREAM);
    assert_eq!((point.count, point.scale), (2, 5));
    assert!((point.sum.expect("a sum") - 0.3).abs() < 1e-12);
    assert_eq!((point.min, point.max), (Some(0.1), Some(0.2)));
    assert_eq!(point.exemplars.len(), 2);
    assert_eq!(point.exemplars[0].trace_id, 1_u128.to_be_bytes());
    assert_eq!(
        (point.start_time_unix_nano, point.time_unix_nano),
        (STARTED, 5_000)
    );
    let buckets = point.positive.as_ref().expect("there are some");
    // Twice as much is 32 buckets further on.
    assert_eq!(buckets.bucket_counts.len(), 33);
    assert_eq!(
        (buckets.bucket_counts[0], buckets.bucket_counts[32]),
        (1, 1)
    );
    // 0.1 lies in (2^(-107/32), 2^(-106/32)]: bucket -106, one lower in OTLP.
    assert_eq!(buckets.offset, -107);
}

#[test]
fn counters_and_gauges_are_what_the_catalog_says() {
    let metrics = metrics(&collect(&collector(&config()), &live(records()), 5_000));
    assert_eq!(
        counts(&metrics, "tokencanary.requests"),
        [
            ("http.response.status_code:200".to_owned(), 2),
            ("http.response.status_code:503".to_owned(), 1)
        ]
    );
    let (_, temporality) = sums(&metrics, "tokencanary.requests");
    assert_eq!(temporality, 2, "cumulative");
    match &find(&metrics, "tokencanary.in_flight").data {
        Some(Data::Gauge(gauge)) => {
            assert_eq!(gauge.data_points[0].value, Some(Number::AsDouble(3.0)));
            assert_eq!(attributes(&gauge.data_points[0].attributes), ["target=t"]);
        }
        other => panic!("{other:?}"),
    }
    let (points, _) = sums(&metrics, "tokencanary.export.items");
    let sent = points
        .iter()
        .find(|point| attributes(&point.attributes).contains(&"result=sent".to_owned()));
    assert_eq!(
        sent.expect("it is there").value,
        Some(Number::AsDouble(7.0))
    );
    for metric in &metrics {
        let known = catalog::ALL.iter().any(|known| known.name == metric.name);
        assert!(known, "{} is not in the catalog", metric.name);
    }
}

#[test]
fn the_conventions_count_failures_too_and_have_their_attributes() {
    let metrics = metrics(&collect(&collector(&config()), &live(records()), 5_000));
    let points = exponential(&metrics, "gen_ai.client.inference.duration");
    let [good, failed] = points else {
        panic!("{points:?}");
    };
    // 200 ms and 250 ms; the failure ended 10 ms after its start.
    assert_eq!((good.count, failed.count), (2, 1));
    assert!((good.sum.expect("a sum") - 0.45).abs() < 1e-12);
    assert!((failed.sum.expect("a sum") - 0.01).abs() < 1e-12);
    let found = attributes(&failed.attributes);
    for wanted in [
        "gen_ai.operation.name=chat",
        "gen_ai.provider.name=openai",
        "server.address=t",
        "server.port:1",
        "error.type=http_status",
        "probe=p",
    ] {
        assert!(found.iter().any(|one| one == wanted), "{wanted}: {found:?}");
    }
    let gaps = exponential(&metrics, "gen_ai.client.inference.time_per_output_chunk");
    assert_eq!(gaps[0].count, 3, "two gaps and one");
    let tokens = exponential(&metrics, "gen_ai.client.inference.operation.output_tokens");
    assert_eq!((tokens[0].count, tokens[0].sum), (2, Some(5.0)));
    assert_eq!(find(&metrics, "gen_ai.client.inference.duration").unit, "s");
    assert!(
        !metrics
            .iter()
            .any(|metric| metric.name == "gen_ai.client.token.usage")
    );
}

#[test]
fn the_legacy_dialect_has_its_own_names_and_one_histogram_of_tokens() {
    let legacy = OtlpConfig {
        conventions: Conventions::Legacy,
        ..config()
    };
    let metrics = metrics(&collect(&collector(&legacy), &live(records()), 5_000));
    assert_eq!(
        exponential(&metrics, "gen_ai.client.operation.duration").len(),
        2
    );
    let usage = exponential(&metrics, "gen_ai.client.token.usage");
    let of: Vec<_> = usage
        .iter()
        .filter(|point| point.count > 0)
        .map(|point| (attributes(&point.attributes).pop(), point.sum))
        .collect();
    assert_eq!(
        of,
        [
            (Some("gen_ai.token.type=input".to_owned()), Some(40.0)),
            (Some("gen_ai.token.type=output".to_owned()), Some(5.0))
        ]
    );
    assert!(
        !metrics
            .iter()
            .any(|one| one.name.starts_with("gen_ai.client.inference"))
    );
    assert!(
        metrics
            .iter()
            .any(|one| one.name == "tokencanary.request.ttft")
    );
}

#[test]
fn explicit_histograms_are_the_classic_ones() {
    let explicit = OtlpConfig {
        histograms: HistogramForm::Explicit,
        ..config()
    };
    let metrics = metrics(&collect(&collector(&explicit), &live(records()), 5_000));
    let Some(Data::Histogram(histogram)) = &find(&metrics, "tokencanary.request.ttft").data else {
        panic!("an explicit one");
    };
    let point = &histogram.data_points[0];
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    assert_eq!(point.bucket_counts.iter().sum::<u64>(), 2);
    // 2^-3.5 = 0.088 < 0.1 <= 2^-3 = 0.125, and 0.177 < 0.2 <= 0.25.
    let in_use: Vec<_> = point
        .explicit_bounds
        .iter()
        .zip(&point.bucket_counts)
        .filter(|(_, count)| **count > 0)
        .map(|(bound, count)| (*bound, *count))
        .collect();
    assert_eq!(in_use, [(0.125, 1), (0.25, 1)]);
}

#[test]
fn a_delta_is_what_came_since_the_last_message_that_was_taken() {
    let delta = OtlpConfig {
        temporality: Temporality::Delta,
        ..config()
    };
    let mut collector = collector(&delta);
    let mut live = live(records());
    let first = collect(&collector, &live, 5_000);
    assert_eq!(
        exponential(&metrics(&first), "tokencanary.request.ttft")[0].count,
        2
    );
    for batch in first {
        collector.taken(batch);
    }
    add(&mut live, vec![ok(&stream(0), 3_000, &[400, 500])]);
    // This one is lost.
    let lost = metrics(&collect(&collector, &live, 6_000));
    assert_eq!(exponential(&lost, "tokencanary.request.ttft")[0].count, 1);
    add(&mut live, vec![ok(&stream(0), 4_000, &[800, 900])]);
    let third = metrics(&collect(&collector, &live, 7_000));
    let point = &exponential(&third, "tokencanary.request.ttft")[0];
    assert_eq!(point.count, 2, "with what was lost");
    assert!((point.sum.expect("a sum") - 1.2).abs() < 1e-9);
    assert_eq!(
        (point.start_time_unix_nano, point.time_unix_nano),
        (5_000, 7_000)
    );
    assert_eq!((point.min, point.max), (None, None), "not known of a part");
    let buckets = point.positive.as_ref().expect("there are some");
    assert_eq!(buckets.bucket_counts.iter().sum::<u64>(), 2);
    assert_eq!(
        counts(&third, "tokencanary.requests"),
        [("http.response.status_code:200".to_owned(), 2)]
    );
    let (_, temporality) = sums(&third, "tokencanary.requests");
    assert_eq!(temporality, 1, "delta");
}

#[test]
fn low_memory_keeps_what_is_only_observed_cumulative() {
    let low = OtlpConfig {
        temporality: Temporality::LowMemory,
        ..config()
    };
    let metrics = metrics(&collect(&collector(&low), &live(records()), 5_000));
    assert_eq!(sums(&metrics, "tokencanary.requests").1, 1, "delta");
    assert_eq!(
        sums(&metrics, "tokencanary.export.items").1,
        2,
        "cumulative"
    );
}

/// Report open-telemetry/opentelemetry-rust#398: a count that was equal to the sum.
#[test]
fn every_count_is_the_sum_of_its_buckets() {
    let metrics = metrics(&collect(&collector(&config()), &live(records()), 5_000));
    let mut seen = 0;
    for metric in &metrics {
        let Some(Data::ExponentialHistogram(histogram)) = &metric.data else {
            continue;
        };
        for point in &histogram.data_points {
            let buckets = point.positive.as_ref().expect("it is said");
            let counted = buckets.bucket_counts.iter().sum::<u64>() + point.zero_count;
            assert_eq!(point.count, counted, "{}", metric.name);
            seen += point.count;
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn many_streams_become_several_messages() {
    let streams: Vec<_> = (0..400).map(stream).collect();
    let rules = streams.iter().map(|stream| (stream.clone(), RULES));
    let mut live = Live::new(rules.collect(), 1);
    for stream in &streams {
        let records = (0..40).map(|step| ok(stream, step * 100, &[10 + step * 50, 5_000]));
        add(&mut live, records.collect());
        add(&mut live, vec![failed(stream, 0, Outcome::Connect, None)]);
    }
    let batches = collect(&collector(&config()), &live, 5_000);
    assert!(batches.len() > 1);
    for batch in &batches {
        let length = prost::Message::encoded_len(&batch.request);
        assert!(length < 4 * 1024 * 1024, "{length}");
        assert!(batch.points > 0);
    }
    let all = metrics(&batches);
    assert_eq!(exponential(&all, "tokencanary.request.ttft").len(), 400);
}
