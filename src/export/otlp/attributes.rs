//! The labels of a series as attributes of OpenTelemetry, and what all messages say of us.
//!
//! Most labels have the same name there. Those of conventions have dots, and metrics of the
//! `GenAI` conventions have what these want beside ours. Pure.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::aggregate::Live;
use crate::config::{BaseUrl, Scheme};
use crate::export::catalog::Metric;
use crate::export::prometheus::family::{Series, stream_labels};

/// Labels whose names have dots in OpenTelemetry.
const DOTTED: [(&str, &str); 6] = [
    ("http_response_status_code", "http.response.status_code"),
    ("gen_ai_operation_name", "gen_ai.operation.name"),
    ("gen_ai_provider_name", "gen_ai.provider.name"),
    ("gen_ai_token_modality", "gen_ai.token.modality"),
    ("gen_ai_token_type", "gen_ai.token.type"),
    ("error_type", "error.type"),
];

/// Attributes whose values are numbers.
const NUMBERS: [&str; 2] = ["http.response.status_code", "server.port"];

/// The attributes of one series, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Labels(Vec<(String, String)>);

impl Labels {
    fn put(&mut self, name: &str, value: &str) {
        let dotted = DOTTED.iter().find(|(label, _)| *label == name);
        let name = dotted.map_or(name, |(_, dotted)| dotted);
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// All of it as one text, which tells series apart.
    pub(super) fn text(&self) -> String {
        self.0.iter().fold(String::new(), |text, (name, value)| {
            text + name + "\u{1f}" + value + "\u{1e}"
        })
    }

    pub(super) fn into_attributes(self) -> Vec<KeyValue> {
        let attributes = self.0.into_iter();
        attributes
            .map(|(name, value)| match value.parse() {
                Ok(number) if NUMBERS.contains(&&*name) => attribute(name, Any::IntValue(number)),
                _ => attribute(name, Any::StringValue(value)),
            })
            .collect()
    }
}

/// The labels of all streams.
pub(super) struct PageLabels(Vec<OfStream>);

struct OfStream {
    labels: Vec<(String, String)>,
    /// What the conventions want beside.
    conventions: Vec<(&'static str, String)>,
}

impl PageLabels {
    pub(super) fn new(live: &Live) -> Self {
        let labels = stream_labels(live).into_iter();
        Self(
            labels
                .zip(live.streams())
                .map(|(labels, live)| {
                    let labels = labels.into_iter();
                    let owned = |(name, value): (std::borrow::Cow<'_, str>, _)| {
                        (name.into_owned(), std::borrow::Cow::into_owned(value))
                    };
                    OfStream {
                        labels: labels.map(owned).collect(),
                        conventions: conventions(live.stream()),
                    }
                })
                .collect(),
        )
    }

    /// The attributes of `series` of `metric`; `token_type` tells apart what legacy names do not.
    pub(super) fn of(
        &self,
        series: &Series<'_>,
        metric: &Metric,
        token_type: Option<&'static str>,
    ) -> Labels {
        let mut found = Labels::default();
        if let Some(stream) = series.stream.and_then(|position| self.0.get(position)) {
            for (name, value) in &stream.labels {
                found.put(name, value);
            }
            if metric.name.starts_with("gen_ai.") {
                for (name, value) in &stream.conventions {
                    found.put(name, value);
                }
            }
        }
        for (name, value) in &series.labels {
            found.put(name, value);
        }
        if let Some(of) = token_type {
            found.put("gen_ai.token.type", of);
        }
        found
    }
}

fn conventions(stream: &crate::measurement::Stream) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if let Some(model) = stream.model.get() {
        found.push(("gen_ai.request.model", model.to_string()));
    }
    if let Ok(url) = BaseUrl::parse(&stream.endpoint) {
        found.push(("server.address", url.host().to_owned()));
        // A Unix socket has a path and no port.
        if url.scheme() != Scheme::Unix {
            found.push(("server.port", url.port().to_string()));
        }
    }
    found
}

/// One attribute.
pub(super) fn attribute(key: impl Into<String>, value: Any) -> KeyValue {
    KeyValue {
        key: key.into(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// Where a message comes from.
pub(super) fn resource(attributes: &[(String, String)]) -> Resource {
    Resource {
        attributes: attributes
            .iter()
            .map(|(name, value)| attribute(name, Any::StringValue(value.clone())))
            .collect(),
        ..Resource::default()
    }
}

/// What in it made the message.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "tokencanary".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}
