//! A record as one span of the OpenTelemetry SDK.
//!
//! The span is built whole, after the fact: our own ids (those the server got in
//! `traceparent`), explicit times, attributes of the `GenAI` conventions where one means
//! exactly this, `tokencanary.*` for the rest. Durations are seconds. An absent value has no
//! attribute. Only what counts against the server ([`RequestRecord::is_failure`]) is an error;
//! every outcome is in `tokencanary.outcome`.
//!
//! Not here: sending. Pure.

mod context;

use std::time::Duration;

use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::aggregate::Kept;
use crate::clock::{MonoTime, WallAnchor};
use crate::config::{BaseUrl, Conventions, Scheme, TraceSampling};
use crate::export::StallRules;
use crate::export::genai::{operation, provider};
use crate::measurement::{
    Counts, Observed, RefusedReason, RequestRecord, TargetState, TokenSource, TraceIds,
};

/// Stall events of one span at most; the rest is counted as dropped events.
const STALL_EVENTS: usize = 32;

/// What spans are made by.
#[derive(Debug, Clone)]
pub struct SpanRules {
    /// When a chunk gap is a stall, per stream.
    pub stalls: StallRules,
    /// The names of what the conventions define.
    pub conventions: Conventions,
    /// Which requests are traced.
    pub sampling: TraceSampling,
}

/// The span of `observed`, its times converted by `wall`.
#[must_use]
pub fn to_span(observed: &Observed, wall: &WallAnchor, rules: &SpanRules) -> SpanData {
    let record = &observed.record;
    let time = &record.timeline;
    // A refused arrival never began: its span has no length and lies where it was due.
    let start = time.start.unwrap_or(time.intended);
    let end = time.end.or(time.last_token).unwrap_or(start);
    let stalls = record.stalls(rules.stalls.of(&record.stream));
    let kept = Kept::of(record, &rules.sampling);
    let mut attributes = Attributes::default();
    attributes.conventions(record, rules.conventions);
    attributes.identity(record, wall);
    let flags = match kept {
        Kept::Head => TraceFlags::SAMPLED,
        Kept::Tail | Kept::Not => TraceFlags::NOT_SAMPLED,
    };
    if kept == Kept::Tail {
        attributes.put("tokencanary.sampled", "tail");
    }
    attributes.timing(record, &stalls);
    attributes.servers(observed);
    if let Some(tcp) = record.tcp {
        attributes.seconds("tokencanary.tcp.rtt", Some(tcp.rtt));
        if let Some(again) = tcp.retransmits {
            attributes.put("tokencanary.tcp.retransmits", i64::from(again));
        }
    }
    if let Some(states) = observed.gpu.as_deref() {
        attributes.gpus(states);
    }
    SpanData {
        span_context: context(record.ids, flags),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Client,
        name: name(record).into(),
        start_time: wall.system_time(start),
        end_time: wall.system_time(end),
        attributes: attributes.0,
        dropped_attributes_count: 0,
        events: events(record, &stalls, wall),
        links: links(record, rules),
        status: status(record),
        instrumentation_scope: InstrumentationScope::builder("tokencanary")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

fn name(record: &RequestRecord) -> String {
    let operation = operation(record.stream.api);
    match record.stream.model.get() {
        Some(model) => format!("{operation} {model}"),
        None => operation.to_owned(),
    }
}

fn status(record: &RequestRecord) -> Status {
    if !record.is_failure() {
        return Status::Unset;
    }
    let description = record.error.as_ref().map_or("", |error| &error.message);
    Status::error(description.to_owned())
}

#[derive(Default)]
struct Attributes(Vec<KeyValue>);

impl Attributes {
    fn put(&mut self, key: &'static str, value: impl Into<Value>) {
        self.0.push(KeyValue::new(key, value));
    }

    fn text(&mut self, key: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.put(key, value.to_owned());
        }
    }

    fn count(&mut self, key: &'static str, value: Option<u32>) {
        if let Some(value) = value {
            self.put(key, i64::from(value));
        }
    }

    fn number(&mut self, key: &'static str, value: Option<f64>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn seconds(&mut self, key: &'static str, value: Option<Duration>) {
        self.number(key, value.map(|span| span.as_secs_f64()));
    }

    /// What the conventions name.
    fn conventions(&mut self, record: &RequestRecord, names: Conventions) {
        let (stream, time, tokens) = (&record.stream, &record.timeline, &record.tokens);
        self.put("gen_ai.operation.name", operation(stream.api));
        self.put("gen_ai.provider.name", provider(stream.api));
        if names == Conventions::Legacy {
            self.put("gen_ai.system", provider(stream.api));
        }
        self.text(
            "gen_ai.request.model",
            stream.model.get().map(|name| &**name),
        );
        self.put("gen_ai.request.stream", stream.streaming);
        self.count("gen_ai.request.max_tokens", tokens.requested_output);
        if let Some(reason) = &record.finish_reason {
            let reasons = vec![StringValue::from(reason.to_string())];
            self.put(
                "gen_ai.response.finish_reasons",
                Value::Array(Array::String(reasons)),
            );
        }
        let first_chunk = time.first_event.zip(time.start);
        self.seconds(
            "gen_ai.response.time_to_first_chunk",
            first_chunk.map(|(event, start)| event.since(start)),
        );
        self.count("gen_ai.usage.input_tokens", tokens.input);
        self.count("gen_ai.usage.output_tokens", tokens.output);
        self.count("gen_ai.usage.cache_read.input_tokens", tokens.cached);
        self.count("gen_ai.usage.reasoning.output_tokens", tokens.reasoning);
        if let Ok(url) = BaseUrl::parse(&stream.endpoint) {
            self.put("server.address", url.host().to_owned());
            // A Unix socket has a path and no port.
            if url.scheme() != Scheme::Unix {
                self.put("server.port", i64::from(url.port()));
            }
        }
        let status = record.http_status.map(u32::from);
        self.count("http.response.status_code", status);
        if record.is_failure() {
            self.put("error.type", record.outcome.name());
        }
        self.put("user_agent.synthetic.type", "test");
    }

    /// Which arrival of which stream it was, and what became of it.
    fn identity(&mut self, record: &RequestRecord, wall: &WallAnchor) {
        let stream = &record.stream;
        self.put("tokencanary.sequence", whole(record.sequence));
        self.put("tokencanary.probe", stream.probe.to_string());
        self.put("tokencanary.target", stream.target.to_string());
        self.put("tokencanary.endpoint", stream.endpoint.to_string());
        self.put("tokencanary.api", stream.api.name());
        self.put("tokencanary.cache", stream.cache.name());
        self.put("tokencanary.connection", stream.connection.name());
        if record.tokens.requested_output.is_some() {
            self.put("tokencanary.length", stream.length.name());
        }
        if let Some(reused) = record.reused {
            self.put("tokencanary.connection.reused", reused);
        }
        if record.replaced_connection {
            self.put("tokencanary.connection.replaced", true);
        }
        self.put("tokencanary.request_id", record.ids.request_id());
        let intended = wall.unix_ns(record.timeline.intended);
        self.put("tokencanary.intended", whole(intended));
        self.put("tokencanary.outcome", record.outcome.name());
        self.text(
            "tokencanary.refused_reason",
            record.refused.map(RefusedReason::name),
        );
        self.text(
            "tokencanary.token_source",
            record.tokens.source.map(TokenSource::name),
        );
        self.text(
            "tokencanary.target.state",
            record.target_state.map(TargetState::name),
        );
        let counts = Some(record.counts).filter(|counts| *counts != Counts::Now);
        self.text("tokencanary.counts", counts.map(Counts::name));
        self.text(
            "tokencanary.phase",
            record.phase.as_ref().map(|phase| phase.kind.name()),
        );
        if let Some(answer) = &record.answer {
            self.put("tokencanary.answer.kind", answer.wanted.kind.name());
            self.put(
                "tokencanary.answer.wanted",
                answer.wanted.answer.to_string(),
            );
            self.put("tokencanary.answer.result", answer.result.name());
        }
        let notes: Vec<StringValue> = record.notes.iter().map(|note| note.name().into()).collect();
        if !notes.is_empty() {
            self.put("tokencanary.notes", Value::Array(Array::String(notes)));
        }
    }

    /// Waits and latencies.
    fn timing(&mut self, record: &RequestRecord, stalls: &[(MonoTime, Duration)]) {
        self.seconds("tokencanary.slot_wait", record.slot_wait());
        self.seconds("tokencanary.schedule_lag", record.schedule_lag());
        self.seconds("tokencanary.read_lag", record.read_lag());
        if record.timeline.start.is_some() {
            self.put("tokencanary.lagged", record.is_lagged());
            self.put("tokencanary.clock", record.clock.name());
        }
        if record.chunks.merged() > 0 {
            self.put(
                "tokencanary.merged_chunks",
                whole(record.chunks.merged() as u64),
            );
        }
        self.seconds("tokencanary.ttft", record.ttft());
        self.seconds("tokencanary.ttfo", record.ttfo());
        self.seconds("tokencanary.itl", record.itl());
        self.seconds("tokencanary.max_gap", record.max_gap());
        if !record.chunks.is_empty() {
            self.put("tokencanary.stalls", whole(stalls.len() as u64));
        }
        self.seconds("tokencanary.service_time", record.service_time());
        self.seconds("tokencanary.response_time", record.response_time());
    }
}

/// The request before it that belongs to it.
fn links(record: &RequestRecord, rules: &SpanRules) -> SpanLinks {
    let mut links = SpanLinks::default();
    if let Some(link) = record.link {
        let flags = if rules.sampling.samples(link.ids.trace) {
            TraceFlags::SAMPLED
        } else {
            TraceFlags::NOT_SAMPLED
        };
        let context = context(link.ids, flags);
        let kind = KeyValue::new("tokencanary.link", link.kind.name());
        links.links.push(Link::new(context, vec![kind], 0));
    }
    links
}

fn context(ids: TraceIds, flags: TraceFlags) -> SpanContext {
    SpanContext::new(
        TraceId::from_bytes(ids.trace.to_be_bytes()),
        SpanId::from_bytes(ids.span.to_be_bytes()),
        flags,
        false,
        TraceState::NONE,
    )
}

/// OTLP has signed integers only; what is larger stops at the largest (year 2262).
fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn events(
    record: &RequestRecord,
    stalls: &[(MonoTime, Duration)],
    wall: &WallAnchor,
) -> SpanEvents {
    let time = &record.timeline;
    let mut marked: Vec<(MonoTime, &'static str, Vec<KeyValue>)> = Vec::new();
    if let Some(at) = time.first_token {
        marked.push((at, "tokencanary.first_token", Vec::new()));
    }
    if let Some(at) = time.first_output {
        marked.push((at, "tokencanary.first_answer_token", Vec::new()));
    }
    for (at, gap) in stalls.iter().take(STALL_EVENTS) {
        let gap = KeyValue::new("tokencanary.chunk_gap", gap.as_secs_f64());
        marked.push((*at, "tokencanary.stall", vec![gap]));
    }
    if record.is_failure() {
        let at = time.end.or(time.start).unwrap_or(time.intended);
        marked.push((at, "tokencanary.error", error(record)));
    }
    marked.sort_by_key(|(at, ..)| *at);

    let mut events = SpanEvents::default();
    events.events = marked
        .into_iter()
        .map(|(at, name, attributes)| Event::new(name, wall.system_time(at), attributes, 0))
        .collect();
    let dropped = stalls.len().saturating_sub(STALL_EVENTS);
    events.dropped_count = u32::try_from(dropped).unwrap_or(u32::MAX);
    events
}

fn error(record: &RequestRecord) -> Vec<KeyValue> {
    let mut attributes = Attributes::default();
    attributes.put("error.type", record.outcome.name());
    if let Some(error) = &record.error {
        attributes.put("tokencanary.error.kind", error.kind.to_string());
        attributes.put("tokencanary.error.message", error.message.to_string());
    }
    attributes.0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;
    use crate::export::fixture::{no_connection, refused, streamed, unary, us, wall};
    use crate::export::otlp::fixture::rules;
    use crate::measurement::{Chunk, ClockSource, KnownKind, Note, Outcome, Wanted};

    fn span(observed: &Observed) -> SpanData {
        to_span(observed, &wall(), &rules())
    }

    /// Hand-written nanoseconds since the epoch.
    fn unix(ns: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(ns)
    }

    /// One attribute per line, `key=value`, in their order.
    fn lines(attributes: &[KeyValue]) -> String {
        attributes.iter().fold(String::new(), |text, pair| {
            text + &format!("{}={}\n", pair.key, pair.value)
        })
    }

    #[test]
    fn a_streamed_answer_becomes_a_client_span_with_all_its_attributes() {
        let span = span(&streamed());
        assert_eq!(span.name, "chat qwen");
        assert_eq!(span.span_kind, SpanKind::Client);
        assert_eq!(
            span.span_context.trace_id().to_string(),
            "0123456789abcdef0123456789abcdef"
        );
        assert_eq!(span.span_context.span_id().to_string(), "00f067aa0ba902c8");
        assert!(span.span_context.is_sampled());
        assert_eq!(span.start_time, unix(1_795_953_601_002_250_000));
        assert_eq!(span.end_time, unix(1_795_953_601_045_650_000));
        assert_eq!(span.status, Status::Unset);
        assert_eq!(
            lines(&span.attributes),
            "gen_ai.operation.name=chat
gen_ai.provider.name=openai
gen_ai.request.model=qwen
gen_ai.request.stream=true
gen_ai.request.max_tokens=64
gen_ai.response.finish_reasons=[\"length\"]
gen_ai.response.time_to_first_chunk=0.01
gen_ai.usage.input_tokens=130
gen_ai.usage.output_tokens=5
gen_ai.usage.cache_read.input_tokens=0
gen_ai.usage.reasoning.output_tokens=1
server.address=vllm.svc
server.port=8000
http.response.status_code=200
user_agent.synthetic.type=test
tokencanary.sequence=17
tokencanary.probe=short-chat
tokencanary.target=qwen-prod
tokencanary.endpoint=http://vllm.svc:8000
tokencanary.api=chat
tokencanary.cache=cold
tokencanary.connection=pooled
tokencanary.length=exact
tokencanary.connection.reused=true
tokencanary.request_id=tokencanary-0123456789abcdef0123456789abcdef
tokencanary.intended=1795953601000000000
tokencanary.outcome=ok
tokencanary.token_source=usage
tokencanary.slot_wait=0.002
tokencanary.schedule_lag=0.00025
tokencanary.lagged=false
tokencanary.clock=user
tokencanary.ttft=0.0102
tokencanary.ttfo=0.012
tokencanary.itl=0.0082
tokencanary.max_gap=0.03
tokencanary.stalls=1
tokencanary.service_time=0.043
tokencanary.response_time=0.04525
tokencanary.server.running=3
tokencanary.server.waiting=0
tokencanary.server.kv_usage=0.41
tokencanary.server.age=0.1805
"
        );
    }

    #[test]
    fn what_was_odd_and_how_it_was_timed_are_attributes() {
        let mut observed = streamed();
        let record = &mut observed.record;
        record.notes.add(Note::Compressed);
        record.chunks.merge_last(Duration::from_millis(1));
        record.clock = ClockSource::Kernel;
        record.read_lag = Some(Duration::from_micros(35));
        let text = lines(&span(&observed).attributes);
        for line in [
            "tokencanary.notes=[\"compressed\"]\n",
            "tokencanary.merged_chunks=1\n",
            "tokencanary.clock=kernel\n",
            "tokencanary.read_lag=0.000035\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn a_unix_socket_is_an_address_without_a_port() {
        let mut observed = streamed();
        let mut stream = Arc::into_inner(observed.record.stream).expect("no one else has it");
        stream.endpoint = "unix:///run/vllm.sock".into();
        observed.record.stream = Arc::new(stream);
        let text = lines(&span(&observed).attributes);
        assert!(text.contains("server.address=/run/vllm.sock\n"), "{text}");
        assert!(!text.contains("server.port"), "{text}");
    }

    #[test]
    fn its_marks_are_events_at_their_own_times() {
        let events: Vec<_> = span(&streamed())
            .events
            .into_iter()
            .map(|event| {
                (
                    event.name.into_owned(),
                    event.timestamp,
                    lines(&event.attributes),
                )
            })
            .collect();
        let event =
            |name: &str, ns, attributes: &str| (name.to_owned(), unix(ns), attributes.to_owned());
        assert_eq!(
            events,
            [
                event("tokencanary.first_token", 1_795_953_601_012_450_000, ""),
                event(
                    "tokencanary.first_answer_token",
                    1_795_953_601_014_250_000,
                    ""
                ),
                event(
                    "tokencanary.stall",
                    1_795_953_601_045_250_000,
                    "tokencanary.chunk_gap=0.03\n"
                ),
            ]
        );
    }

    #[test]
    fn a_refused_arrival_is_a_span_without_length_where_it_was_due() {
        let span = span(&refused());
        assert_eq!(span.start_time, unix(1_795_953_601_000_000_000));
        assert_eq!(span.end_time, unix(1_795_953_601_000_000_000));
        assert_eq!(span.status, Status::error(""));
        assert_eq!(
            lines(&span.attributes),
            "gen_ai.operation.name=chat
gen_ai.provider.name=openai
gen_ai.request.model=qwen
gen_ai.request.stream=true
server.address=vllm.svc
server.port=8000
error.type=refused
user_agent.synthetic.type=test
tokencanary.sequence=18
tokencanary.probe=short-chat
tokencanary.target=qwen-prod
tokencanary.endpoint=http://vllm.svc:8000
tokencanary.api=chat
tokencanary.cache=cold
tokencanary.connection=pooled
tokencanary.request_id=tokencanary-0123456789abcdef0123456789abcdef
tokencanary.intended=1795953601000000000
tokencanary.outcome=refused
tokencanary.refused_reason=in_flight
"
        );
    }

    #[test]
    fn a_failure_says_what_failed_and_when() {
        let span = span(&no_connection());
        assert_eq!(span.name, "chat", "the model is not known");
        assert_eq!(span.status, Status::error("tcp connect: \"refused\""));
        assert_eq!(span.end_time, unix(1_795_953_601_000_960_000));
        assert_eq!(span.events.len(), 1);
        assert_eq!(span.events[0].timestamp, span.end_time);
        assert_eq!(
            lines(&span.events[0].attributes),
            "error.type=connect
tokencanary.error.kind=connection refused
tokencanary.error.message=tcp connect: \"refused\"
"
        );
        assert!(lines(&span.attributes).contains("\nerror.type=connect\n"));
    }

    #[test]
    fn what_the_server_did_not_cause_is_no_error() {
        let mut observed = refused();
        observed.record.refused = Some(RefusedReason::Budget);
        assert_eq!(span(&observed).status, Status::Unset);
        let mut observed = streamed();
        observed.record.outcome = Outcome::Cancelled;
        let span = span(&observed);
        assert_eq!(span.status, Status::Unset);
        assert!(!lines(&span.attributes).contains("error.type"));
        assert!(lines(&span.attributes).contains("tokencanary.outcome=cancelled\n"));
    }

    #[test]
    fn a_unary_answer_has_no_token_times() {
        let span = span(&unary());
        let attributes = lines(&span.attributes);
        for absent in ["time_to_first_chunk", "ttft", "itl", "stalls", "max_gap"] {
            assert!(!attributes.contains(absent), "{absent}: {attributes}");
        }
        assert!(attributes.contains("gen_ai.request.stream=false\n"));
        assert!(attributes.contains("tokencanary.service_time=0.3201\n"));
        assert!(span.events.is_empty());
    }

    /// Reads this file, so that attributes of rare records are found too.
    #[test]
    fn the_reference_page_names_every_attribute_and_event() {
        let page = include_str!("../../../docs/spans.md");
        let (code, _) = include_str!("span.rs")
            .split_once("#[cfg(test)]")
            .expect("the tests are below the code");
        let known = |text: &&str| {
            let (room, rest) = text.split_once('.').unwrap_or_default();
            let rooms = [
                "gen_ai",
                "tokencanary",
                "server",
                "http",
                "error",
                "user_agent",
            ];
            let plain = |c: char| c.is_ascii_lowercase() || c == '_' || c == '.';
            rooms.contains(&room) && !rest.is_empty() && rest.chars().all(plain)
        };
        let names: Vec<&str> = code.split('"').filter(known).collect();
        assert!(names.contains(&"tokencanary.connection.replaced"));
        assert!(names.contains(&"tokencanary.first_answer_token"));
        for name in names {
            assert!(page.contains(&format!("`{name}`")), "`{name}`");
        }
    }

    #[test]
    fn a_question_has_what_was_wanted_and_what_became_of_it() {
        let mut observed = unary();
        let wanted = Wanted {
            kind: KnownKind::Arithmetic,
            answer: "42".into(),
        };
        observed.record.answer = Some(wanted.unjudged());
        observed.record.reply = Some("41".into());
        observed.record.judge();
        let attributes = lines(&span(&observed).attributes);
        for part in ["kind=arithmetic", "wanted=42", "result=wrong"] {
            let line = format!("tokencanary.answer.{part}\n");
            assert!(attributes.contains(&line), "{part} in {attributes}");
        }
        assert!(!lines(&span(&unary()).attributes).contains("answer"));
    }

    #[test]
    fn a_span_of_the_tail_says_so_and_is_not_sampled() {
        let mut rules = rules();
        rules.sampling.ratio = 0.0;
        let mut observed = no_connection();
        observed.record.traced = false;
        let failed = to_span(&observed, &wall(), &rules);
        assert!(lines(&failed.attributes).contains("tokencanary.sampled=tail\n"));
        assert!(!failed.span_context.is_sampled());
        let whole = span(&no_connection());
        assert!(!lines(&whole.attributes).contains("tokencanary.sampled"));
        assert!(whole.span_context.is_sampled());
    }

    #[test]
    fn a_request_is_linked_to_the_one_before_that_belongs_to_it() {
        let mut observed = streamed();
        assert_eq!(span(&observed).links.len(), 0);
        observed.record.link = Some(crate::measurement::Link {
            kind: crate::measurement::LinkKind::Pair,
            ids: TraceIds { trace: 7, span: 9 },
        });
        let links = span(&observed).links;
        assert_eq!(links.len(), 1);
        let link = &links[0];
        assert_eq!(
            link.span_context.trace_id().to_string(),
            "0".repeat(31) + "7"
        );
        assert_eq!(link.span_context.span_id().to_string(), "0000000000000009");
        assert!(link.span_context.is_sampled());
        assert_eq!(lines(&link.attributes), "tokencanary.link=pair\n");
    }

    #[test]
    fn the_legacy_names_stand_beside_the_current_ones() {
        let mut rules = rules();
        rules.conventions = Conventions::Legacy;
        let text = lines(&to_span(&streamed(), &wall(), &rules).attributes);
        assert!(text.contains("gen_ai.provider.name=openai\ngen_ai.system=openai\n"));
    }

    #[test]
    fn stall_events_are_bounded_and_the_rest_is_counted() {
        let mut observed = streamed();
        let mut at = 1_100_000;
        // 40 stalls of 30 ms among 50 gaps of 1 ms.
        for read in 0..90 {
            at += if read % 9 < 4 { 30_000 } else { 1_000 };
            observed.record.chunks.push(Chunk::exact(us(at), read));
        }
        let span = span(&observed);
        let stalls = span
            .events
            .iter()
            .filter(|event| event.name == "tokencanary.stall")
            .count();
        // With the fixture's own stall: 41.
        assert_eq!((stalls, span.events.dropped_count), (32, 9));
        assert!(lines(&span.attributes).contains("tokencanary.stalls=41\n"));
    }
}
