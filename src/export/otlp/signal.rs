//! The three signals, and what each is called where.

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
    Logs,
}

impl Signal {
    /// The exporter's name in our own metrics and logs.
    pub(super) const fn exporter(self) -> &'static str {
        match self {
            Self::Traces => "otlp_traces",
            Self::Metrics => "otlp_metrics",
            Self::Logs => "otlp_logs",
        }
    }

    /// What its messages hold, in our own log.
    pub(super) const fn items(self) -> &'static str {
        match self {
            Self::Traces => "spans",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }

    /// The path of its one gRPC method.
    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Self::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Self::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        }
    }
}
