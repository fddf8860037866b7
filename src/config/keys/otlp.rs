//! The keys of `export.otlp`.

use super::{Key, PEM_CERTIFICATES, PEM_KEY, Table, key};

pub(in crate::config) const OTLP: Table = Table {
    at: "export.otlp",
    keys: &[
        key(
            "endpoint",
            "the base URL of a receiver, as in `http://127.0.0.1:4318`",
        ),
        key(
            "traces_endpoint",
            "a whole URL, as in `http://127.0.0.1:4318/v1/traces`",
        ),
        key(
            "metrics_endpoint",
            "a whole URL, as in `http://127.0.0.1:4318/v1/metrics`",
        ),
        key(
            "logs_endpoint",
            "a whole URL, as in `http://127.0.0.1:4318/v1/logs`",
        ),
        key("signals", "a list of `traces`, `metrics` and `logs`"),
        PROTOCOL,
        HEADERS,
        COMPRESSION,
        TIMEOUT,
        TLS_SECTION,
        key("traces", OF_SIGNAL),
        key("metrics", OF_SIGNAL),
        key("logs", OF_SIGNAL),
        key("queue", "a whole number from `1` to `1000000`"),
        key("every", "a duration, as in `10s`"),
        key("temporality", "`cumulative`, `delta` or `low_memory`"),
        key("histograms", "`exponential` or `explicit`"),
        key("conventions", "`current` or `legacy`"),
        key("sampling", "a section, as in `{ ratio: 10% }`"),
        key("service_name", "a text"),
        key("resource", "a section of attribute names and their values"),
    ],
    later: &["proxy"],
};

const PROTOCOL: Key = key("protocol", "`http/protobuf`, `http/json` or `grpc`");
const HEADERS: Key = key("headers", "a section of header names and their values");
const COMPRESSION: Key = key("compression", "`none` or `gzip`");
const TIMEOUT: Key = key("timeout", "a duration, as in `10s`");
const TLS_SECTION: Key = key("tls", "a section, as in `{ ca: /etc/tls/ca.pem }`");
const OF_SIGNAL: &str = "a section, as in `{ protocol: grpc }`";

const fn signal(at: &'static str) -> Table {
    Table {
        at,
        keys: &[PROTOCOL, HEADERS, COMPRESSION, TIMEOUT, TLS_SECTION],
        later: &[],
    }
}

pub(in crate::config) const OTLP_TRACES: Table = signal("export.otlp.traces");
pub(in crate::config) const OTLP_METRICS: Table = signal("export.otlp.metrics");
pub(in crate::config) const OTLP_LOGS: Table = signal("export.otlp.logs");

pub(in crate::config) const OTLP_TLS: Table = Table {
    at: "export.otlp.tls",
    keys: &[
        key("ca", PEM_CERTIFICATES),
        key("cert", PEM_CERTIFICATES),
        key("key", PEM_KEY),
        key("server_name", "a host name, as in `collector.internal`"),
    ],
    later: &["insecure", "min_version"],
};

pub(in crate::config) const SAMPLING: Table = Table {
    at: "export.otlp.sampling",
    keys: &[
        key("ratio", "a percentage, as in `10%`"),
        key("tail", "a section, as in `{ ttft: 2s }`"),
    ],
    later: &[],
};

pub(in crate::config) const TAIL: Table = Table {
    at: "export.otlp.sampling.tail",
    keys: &[
        key("failures", "`true` or `false`"),
        key("ttft", "a duration, as in `2s`"),
        key("itl", "a duration, as in `50ms`"),
        key("response_time", "a duration, as in `10s`"),
    ],
    later: &[],
};
