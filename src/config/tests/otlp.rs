//! OTLP: where each signal goes, and the `OTEL_*` variables.

use super::*;
use crate::config::{
    Compression, Conventions, HistogramForm, OtlpConfig, OtlpProtocol, OtlpReceiver, Temporality,
};

/// The configuration with `keys` under `export.otlp` and `env` around it; `None` if OTLP is off.
fn otlp_in(keys: &str, env: &[(&str, &str)]) -> Result<Option<OtlpConfig>, String> {
    let section = match keys {
        "" => String::new(),
        keys => format!("export: {{ otlp: {{ {keys} }} }}\n"),
    };
    let text = format!("{}{section}", with_probe(GOOD));
    Ok(overlaid(&text, env, &[])?.export.otlp)
}

fn otlp(keys: &str, env: &[(&str, &str)]) -> OtlpConfig {
    otlp_in(keys, env)
        .unwrap_or_else(|found| panic!("{keys}: {found}"))
        .expect("OTLP is on")
}

/// The URLs of traces, metrics and logs.
fn urls(config: &OtlpConfig) -> [Option<&str>; 3] {
    [&config.traces, &config.metrics, &config.logs]
        .map(|receiver| receiver.as_ref().map(|receiver| &*receiver.url))
}

fn traces(config: &OtlpConfig) -> &OtlpReceiver {
    config.traces.as_ref().expect("traces are sent")
}

#[test]
fn a_base_is_completed_and_a_whole_url_is_taken_as_it_is() {
    for (keys, wanted) in [
        (
            "endpoint: 'http://h:4318/'",
            [
                Some("http://h:4318/v1/traces"),
                Some("http://h:4318/v1/metrics"),
                Some("http://h:4318/v1/logs"),
            ],
        ),
        (
            "traces_endpoint: 'http://h/tenant/spans'",
            [Some("http://h/tenant/spans"), None, None],
        ),
        (
            "endpoint: 'http://h:4318', metrics_endpoint: 'http://vm/opentelemetry/v1/metrics'",
            [
                Some("http://h:4318/v1/traces"),
                Some("http://vm/opentelemetry/v1/metrics"),
                Some("http://h:4318/v1/logs"),
            ],
        ),
        (
            "endpoint: 'http://h:4318', signals: [metrics]",
            [None, Some("http://h:4318/v1/metrics"), None],
        ),
        (
            "endpoint: 'http://h:4317', protocol: grpc",
            [
                Some("http://h:4317"),
                Some("http://h:4317"),
                Some("http://h:4317"),
            ],
        ),
    ] {
        assert_eq!(urls(&otlp(keys, &[])), wanted, "{keys}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (keys, wanted) in [
        (
            "queue: 5",
            "c.yaml:9: `export.otlp.endpoint`: missing
  wanted: the base URL of a receiver, as in `http://127.0.0.1:4318`",
        ),
        (
            "protocol: grpc, traces_endpoint: 'http://h:4317/v1/traces'",
            "c.yaml:9: `export.otlp.traces_endpoint`: not understood
  given: `http://h:4317/v1/traces`
  wanted: scheme, host and port, as in `http://127.0.0.1:4317`
  hint: gRPC knows no paths",
        ),
        (
            "endpoint: 'http://h', protocol: http/proto",
            "c.yaml:9: `export.otlp.protocol`: not understood
  given: `http/proto`
  wanted: `http/protobuf`, `http/json` or `grpc`
  hint: did you mean `http/protobuf`",
        ),
        (
            "endpoint: 'http://h', tls: { server_name: x }",
            "c.yaml:9: `export.otlp.tls`: does not go together
  given: a section
  wanted: a URL that begins with `https://`
  hint: without it nothing is encrypted",
        ),
        (
            "endpoint: 'https://h', compression: zstd",
            "c.yaml:9: `export.otlp.compression`: not available in this version
  given: `zstd`
  wanted: `none` or `gzip`",
        ),
        (
            "endpoint: 'http://h', sampling: { ratio: 0.1 }",
            "c.yaml:9: `export.otlp.sampling.ratio`: wrong unit
  given: `0.1`
  wanted: a percentage, as in `10%`
  hint: write `0.1%`",
        ),
    ] {
        assert_eq!(otlp_in(keys, &[]), Err(wanted.to_owned()), "{keys}");
    }
}

#[test]
fn a_signal_may_go_its_own_way() {
    let config = otlp(
        "endpoint: 'http://h', protocol: http/json, headers: { a: '1', b: '2' }, timeout: 3s,
         traces: { protocol: http/protobuf, headers: { B: '3' }, compression: gzip }",
        &[],
    );
    let own = traces(&config);
    assert_eq!(own.protocol, OtlpProtocol::HttpProtobuf);
    assert_eq!(own.compression, Compression::Gzip);
    assert_eq!(own.timeout, Duration::from_secs(3));
    let headers = |receiver: &OtlpReceiver| {
        let mut headers: Vec<_> = receiver
            .headers
            .iter()
            .map(|(name, value)| format!("{name}={}", value.reveal()))
            .collect();
        headers.sort();
        headers.join(" ")
    };
    assert_eq!(headers(own), "B=3 a=1");
    let other = config.logs.as_ref().expect("logs are sent");
    assert_eq!(other.protocol, OtlpProtocol::HttpJson);
    assert_eq!(other.compression, Compression::None);
    assert_eq!(headers(other), "a=1 b=2");
}

#[test]
fn variables_switch_it_on_where_they_say_where_it_goes() {
    assert_eq!(otlp_in("", &[("OTEL_SERVICE_NAME", "x")]), Ok(None));
    let config = otlp("", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318")]);
    assert_eq!(urls(&config)[0], Some("http://h:4318/v1/traces"));
    let only = [("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://h/in")];
    assert_eq!(urls(&otlp("", &only)), [None, None, Some("http://h/in")]);
    let off = [("OTEL_SDK_DISABLED", "TRUE")];
    assert_eq!(otlp_in("endpoint: 'http://h'", &off), Ok(None));
}

#[test]
fn every_variable_has_its_effect() {
    let env = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://env:4317"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://env/spans"),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "x-given=environment, x-more=a%20b",
        ),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "none"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
        ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", ""),
        ("OTEL_METRIC_EXPORT_INTERVAL", "5000"),
        (
            "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
            "LowMemory",
        ),
        (
            "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
            "EXPLICIT_BUCKET_HISTOGRAM",
        ),
        ("OTEL_SERVICE_NAME", "canary-eu"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=other,deployment.environment=a%2Cb",
        ),
    ];
    let keys = "endpoint: 'http://file:4318', headers: { X-Given: file, x-kept: file }, every: 7s";
    let config = otlp(keys, &env);
    assert_eq!(
        urls(&config),
        [
            Some("http://env/spans"),
            Some("http://env:4317"),
            Some("http://env:4317")
        ]
    );
    let own = traces(&config);
    assert_eq!(own.protocol, OtlpProtocol::HttpJson);
    assert_eq!(own.compression, Compression::Gzip);
    assert_eq!(own.timeout, Duration::from_millis(2500));
    let mut headers: Vec<_> = own
        .headers
        .iter()
        .map(|(name, value)| (&**name, value.reveal()))
        .collect();
    headers.sort_unstable();
    assert_eq!(
        headers,
        [
            ("X-Given", "environment"),
            ("x-kept", "file"),
            ("x-more", "a b")
        ]
    );
    let metrics = config.metrics.as_ref().expect("metrics are sent");
    assert_eq!(metrics.compression, Compression::None);
    assert_eq!(config.every, Duration::from_secs(5));
    assert_eq!(config.temporality, Temporality::LowMemory);
    assert_eq!(config.histograms, HistogramForm::Explicit);
    assert_eq!(config.conventions, Conventions::Current);
    let attribute = |name: &str| {
        let found = config.resource.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    };
    assert_eq!(attribute("service.name"), Some("canary-eu"));
    assert_eq!(attribute("deployment.environment"), Some("a,b"));
}

#[test]
fn our_own_variables_go_before_those_of_all_programs() {
    let env = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel"),
        ("TOKENCANARY__export__otlp__endpoint", "http://ours"),
    ];
    assert_eq!(urls(&otlp("", &env))[0], Some("http://ours/v1/traces"));
}

#[test]
fn a_bad_variable_is_told_by_its_name_and_headers_without_their_values() {
    let found = otlp_in(
        "endpoint: 'http://h'",
        &[
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "thrift"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "s3cret"),
        ],
    )
    .expect_err("it is refused");
    assert_eq!(
        found,
        "environment variable `OTEL_EXPORTER_OTLP_HEADERS`: `export.otlp.headers.?`: not understood
  wanted: the name of a header
environment variable `OTEL_EXPORTER_OTLP_TIMEOUT`: `export.otlp.timeout`: not understood
  given: `soon`
  wanted: a duration, as in `10s`
environment variable `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL`: `export.otlp.traces.protocol`: not understood
  given: `thrift`
  wanted: `http/protobuf`, `http/json` or `grpc`"
    );
}

#[test]
fn what_the_file_says_of_sampling_is_read() {
    let config = otlp(
        "endpoint: 'http://h', sampling: { ratio: 0%, tail: { failures: false, ttft: 2s } }",
        &[],
    );
    assert!(config.sampling.ratio.abs() < f64::EPSILON);
    assert!(!config.sampling.tail.failures);
    assert_eq!(config.sampling.tail.ttft, Some(Duration::from_secs(2)));
    assert_eq!(config.sampling.tail.itl, None);
    let config = otlp("endpoint: 'http://h', sampling: { ratio: 25% }", &[]);
    assert!((config.sampling.ratio - 0.25).abs() < f64::EPSILON);
    assert!(config.sampling.tail.failures);
}
