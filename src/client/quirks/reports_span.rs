//! Faults that users of tools that make spans reported, each by its number in the list: what the
//! answer says is in the span, and the span ends with the stream.

use std::time::Duration;

use opentelemetry_sdk::trace::SpanData;

use super::case::{A, DONE, ROLE, STOP, chat, named, of, usage};
use crate::clock::TimeAnchor;
use crate::config::{Conventions, DEFAULT_STALL, TraceSampling};
use crate::export::StallRules;
use crate::export::otlp::{SpanRules, to_span};
use crate::measurement::{Api, Observed, Outcome, RequestRecord};

fn span(record: RequestRecord) -> SpanData {
    let rules = SpanRules {
        stalls: StallRules::new(vec![DEFAULT_STALL]),
        conventions: Conventions::Current,
        sampling: TraceSampling::default(),
    };
    let observed = Observed {
        record,
        at_intended: None,
        at_first_token: None,
        at_end: None,
        gpu: None,
    };
    to_span(&observed, &TimeAnchor::start().wall(), &rules)
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|pair| pair.key.as_str() == key);
    found.map(|pair| pair.value.to_string())
}

fn length(span: &SpanData) -> Option<Duration> {
    span.end_time.duration_since(span.start_time).ok()
}

#[test]
pub(super) fn b059_a_streamed_response_has_a_span_that_ends_with_it_and_its_usage() {
    let text = named(
        "response.output_text.delta",
        r#"{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"a"}"#,
    );
    let completed = named(
        "response.completed",
        r#"{"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":5,"output_tokens":2}}}"#,
    );
    let reads = [(30, &*text), (40, &text), (55, &completed)];
    let record = of(Api::Responses, &reads).record();
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    let span = span(record);
    assert_eq!(length(&span), Some(Duration::from_millis(55)));
    let told = |key| attribute(&span, key);
    assert_eq!(told("gen_ai.usage.input_tokens").as_deref(), Some("5"));
    assert_eq!(told("gen_ai.usage.output_tokens").as_deref(), Some("2"));
    assert_eq!(told("gen_ai.operation.name").as_deref(), Some("chat"));
}

#[test]
pub(super) fn b060_a_chunk_without_choices_at_the_end_costs_no_span() {
    let nothing = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\"}\n\n";
    let reads = [
        (20, ROLE),
        (30, A),
        (40, A),
        (41, STOP),
        (42, nothing),
        (43, &*usage(2)),
        (44, DONE),
    ];
    let record = chat(&reads).record();
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    let span = span(record);
    assert_eq!(length(&span), Some(Duration::from_millis(44)));
    assert_eq!(
        attribute(&span, "gen_ai.usage.output_tokens").as_deref(),
        Some("2")
    );
    assert_eq!(attribute(&span, "error.type"), None);
}
