//! A record as one JSON object: the schema `tokencanary.request/1`.
//!
//! Within `/1` fields are only added. Durations and times are milliseconds with all their
//! nanoseconds, at most six decimals. A mark that was not reached is null; for a refused
//! arrival everything from `start` on is null, counts of what came included, since nothing was
//! asked. What describes chunks (`first_chunk`, `stalls`) is null where no chunk came.
//!
//! Not here: files. Pure.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::clock::{MonoTime, WallAnchor};
use crate::measurement::{
    Answer, Api, CacheMode, ClockSource, ConnectionPolicy, Counts, FirstChunk, GpuStates,
    LengthMode, Notes, Observed, Outcome, PhaseKind, RefusedReason, RequestError, RequestRecord,
    StallRule, StateAt, TargetState, TcpFacts, TokenSource,
};

/// What the operator may choose about a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordOptions {
    /// When a chunk gap of this stream is a stall.
    pub stall: StallRule,
    /// Whether `chunk_gaps_ms` is filled.
    pub gaps: bool,
}

/// `observed` as one JSON object, without a line break.
///
/// # Panics
///
/// Never: a record holds nothing that JSON cannot.
#[must_use]
pub fn to_json_line(observed: &Observed, wall: &WallAnchor, options: RecordOptions) -> String {
    serde_json::to_string(&Line::new(observed, wall, options))
        .expect("texts and numbers always have a JSON form")
}

/// Milliseconds. The quotient is correctly rounded, so its shortest form has no noise.
#[derive(Clone, Copy)]
struct Ms(Duration);

impl Serialize for Ms {
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact up to 104 days; a request is given up long before"
    )]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.as_nanos() as f64 / 1e6)
    }
}

fn ms(span: Option<Duration>) -> Option<Ms> {
    span.map(Ms)
}

#[derive(Serialize)]
struct Line<'a> {
    schema: &'static str,
    sequence: u64,
    target: &'a str,
    endpoint: &'a str,
    probe: &'a str,
    model: Option<&'a str>,
    api: Api,
    cache: CacheMode,
    connection: ConnectionPolicy,
    length: Option<LengthMode>,
    reused: Option<bool>,
    replaced_connection: bool,
    refused_reason: Option<RefusedReason>,
    trace_id: String,
    span_id: String,
    request_id: String,
    clock: ClockSource,
    merged_chunks: usize,
    notes: Notes,
    lagged: bool,
    intended_unix_ns: u64,
    start_unix_ns: Option<u64>,
    waits_ms: Waits,
    phases_ms: Phases,
    /// What the kernel knew of the connection at the end.
    tcp: Option<Tcp>,
    times_ms: Times,
    itl_ms: Option<Ms>,
    first_chunk: Option<FirstChunk>,
    max_gap_ms: Option<Ms>,
    stalls: Option<usize>,
    chunk_gaps_ms: Vec<Ms>,
    service_time_ms: Option<Ms>,
    response_time_ms: Option<Ms>,
    tokens: Tokens,
    chunks: Option<usize>,
    /// Answers that carried tokens, if more than one did.
    choices: Option<u32>,
    bytes: Option<u64>,
    outcome: Outcome,
    http_status: Option<u16>,
    finish_reason: Option<&'a str>,
    error: Option<&'a RequestError>,
    /// What became of its question, where the answer is known.
    answer: Option<Answered<'a>>,
    certificate_expiry_unix: Option<i64>,
    server: Server,
    gpu: Option<&'a GpuStates>,
    phase: Option<&'a str>,
    phase_kind: PhaseKind,
    /// How the target stood once the request had ended.
    target_state: Option<TargetState>,
    /// Whether it counts, as far as starts of the server go.
    counts: Counts,
}

#[derive(Serialize)]
struct Answered<'a> {
    kind: &'static str,
    wanted: &'a str,
    result: &'static str,
}

#[derive(Serialize)]
struct Waits {
    slot: Option<Ms>,
    schedule_lag: Option<Ms>,
    read_lag: Option<Ms>,
}

/// Durations, each from the end of the one before.
#[derive(Serialize)]
struct Phases {
    dns: Option<Ms>,
    connect: Option<Ms>,
    tls: Option<Ms>,
}

/// Of the connection.
#[derive(Serialize)]
struct Tcp {
    rtt_ms: Ms,
    rtt_deviation_ms: Ms,
    retransmits: Option<u32>,
}

impl From<TcpFacts> for Tcp {
    fn from(facts: TcpFacts) -> Self {
        Self {
            rtt_ms: Ms(facts.rtt),
            rtt_deviation_ms: Ms(facts.rtt_deviation),
            retransmits: facts.retransmits,
        }
    }
}

/// From start.
#[derive(Serialize)]
struct Times {
    sent: Option<Ms>,
    headers: Option<Ms>,
    first_byte: Option<Ms>,
    first_event: Option<Ms>,
    ttft: Option<Ms>,
    ttfo: Option<Ms>,
    last_token: Option<Ms>,
    end: Option<Ms>,
}

#[derive(Serialize)]
struct Tokens {
    input: Option<u32>,
    output: Option<u32>,
    reasoning: Option<u32>,
    cached: Option<u32>,
    source: Option<TokenSource>,
    requested_input: Option<u32>,
    requested_output: Option<u32>,
    requested_cached: Option<u32>,
}

#[derive(Serialize)]
struct Server {
    intended: Option<State>,
    first_token: Option<State>,
    end: Option<State>,
}

#[derive(Serialize)]
struct State {
    running: Option<f64>,
    waiting: Option<f64>,
    swapped: Option<f64>,
    kv_usage: Option<f64>,
    prefix_hit_rate: Option<f64>,
    age_ms: f64,
}

impl<'a> Line<'a> {
    fn new(observed: &'a Observed, wall: &WallAnchor, options: RecordOptions) -> Self {
        let record = &observed.record;
        every_field_is_written(record);
        let (stream, time) = (&*record.stream, &record.timeline);
        let started = time.start.is_some();
        let chunked = !record.chunks.is_empty();
        let gaps = options.gaps.then(|| record.chunks.gaps().map(Ms).collect());
        Self {
            schema: "tokencanary.request/1",
            sequence: record.sequence,
            target: &stream.target,
            endpoint: &stream.endpoint,
            probe: &stream.probe,
            model: stream.model.get().map(|name| &**name),
            api: stream.api,
            cache: stream.cache,
            connection: stream.connection,
            length: record.tokens.requested_output.map(|_| stream.length),
            reused: record.reused,
            replaced_connection: record.replaced_connection,
            refused_reason: record.refused,
            trace_id: record.ids.trace_hex(),
            span_id: record.ids.span_hex(),
            request_id: record.ids.request_id(),
            clock: record.clock,
            merged_chunks: record.chunks.merged(),
            notes: record.notes,
            lagged: record.is_lagged(),
            intended_unix_ns: wall.unix_ns(time.intended),
            start_unix_ns: time.start.map(|at| wall.unix_ns(at)),
            waits_ms: Waits {
                slot: ms(record.slot_wait()),
                schedule_lag: ms(record.schedule_lag()),
                read_lag: ms(record.read_lag()),
            },
            phases_ms: Phases::new(record),
            tcp: record.tcp.map(Tcp::from),
            times_ms: Times::new(record),
            itl_ms: ms(record.itl()),
            first_chunk: chunked.then(|| record.first_chunk()),
            max_gap_ms: ms(record.max_gap()),
            stalls: chunked.then(|| record.stalls(options.stall).len()),
            chunk_gaps_ms: gaps.unwrap_or_default(),
            service_time_ms: ms(record.service_time()),
            response_time_ms: ms(record.response_time()),
            tokens: Tokens::new(record),
            chunks: started.then(|| record.chunks.len()),
            choices: record.choices.map(|choices| choices.count),
            bytes: started.then_some(record.bytes),
            outcome: record.outcome,
            http_status: record.http_status,
            finish_reason: record.finish_reason.as_deref(),
            error: record.error.as_ref(),
            answer: record.answer.as_ref().map(Answered::from),
            certificate_expiry_unix: record.certificate_expiry,
            server: Server {
                intended: observed.at_intended.map(State::from),
                first_token: observed.at_first_token.map(State::from),
                end: observed.at_end.map(State::from),
            },
            gpu: observed.gpu.as_deref(),
            phase: record.phase.as_ref().map(|phase| &*phase.name),
            phase_kind: record
                .phase
                .as_ref()
                .map_or(PhaseKind::Profiling, |phase| phase.kind),
            target_state: record.target_state,
            counts: record.counts,
        }
    }
}

/// Does nothing, and does not compile when a record has a field that is not named here: write it
/// above, and describe it in `docs/records.md`.
const fn every_field_is_written(record: &RequestRecord) {
    let RequestRecord {
        sequence: _,
        stream: _,
        phase: _,
        ids: _,
        // What is about spans is in the span.
        traced: _,
        link: _,
        timeline: _,
        reused: _,
        tcp: _,
        replaced_connection: _,
        tokens: _,
        chunks: _,
        notes: _,
        choices: _,
        read_lag: _,
        // What a server answered stays in the program.
        text: _,
        reply: _,
        answer: _,
        certificate_expiry: _,
        bytes: _,
        outcome: _,
        refused: _,
        http_status: _,
        finish_reason: _,
        error: _,
        clock: _,
        target_state: _,
        counts: _,
    } = record;
}

impl Phases {
    fn new(record: &RequestRecord) -> Self {
        let time = &record.timeline;
        let span = |from: Option<MonoTime>, to: Option<MonoTime>| ms(Some(to?.since(from?)));
        Self {
            dns: span(time.start, time.resolved),
            connect: span(time.resolved.or(time.start), time.connected),
            tls: span(time.connected, time.tls_done),
        }
    }
}

impl Times {
    fn new(record: &RequestRecord) -> Self {
        let time = &record.timeline;
        let after = |mark: Option<MonoTime>| ms(Some(mark?.since(time.start?)));
        Self {
            sent: after(time.sent),
            headers: after(time.headers),
            first_byte: after(time.first_byte),
            first_event: after(time.first_event),
            ttft: ms(record.ttft()),
            ttfo: ms(record.ttfo()),
            last_token: after(time.last_token),
            end: after(time.end),
        }
    }
}

impl Tokens {
    fn new(record: &RequestRecord) -> Self {
        let tokens = &record.tokens;
        Self {
            input: tokens.input,
            output: tokens.output,
            reasoning: tokens.reasoning,
            cached: tokens.cached,
            source: tokens.source,
            requested_input: tokens.requested_input,
            requested_output: tokens.requested_output,
            requested_cached: tokens.requested_cached,
        }
    }
}

impl<'a> From<&'a Answer> for Answered<'a> {
    fn from(answer: &'a Answer) -> Self {
        Self {
            kind: answer.wanted.kind.name(),
            wanted: &answer.wanted.answer,
            result: answer.result.name(),
        }
    }
}

impl From<StateAt> for State {
    fn from(state: StateAt) -> Self {
        Self {
            running: state.running,
            waiting: state.waiting,
            swapped: state.swapped,
            kv_usage: state.kv_usage,
            prefix_hit_rate: state.prefix_hit_rate,
            // It was multiplied from seconds: nanoseconds are real, the rest is noise.
            age_ms: (state.age_ms * 1e6).round() / 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture::{STALL, no_connection, refused, streamed, unary, wall};
    use crate::measurement::{Choices, KnownKind, Note, Wanted};

    fn check(observed: &Observed, gaps: bool, expected: &str) {
        let options = RecordOptions { stall: STALL, gaps };
        let line = to_json_line(observed, &wall(), options);
        assert_eq!(line, expected.replace('\n', ""));
    }

    #[test]
    fn a_streamed_answer_has_every_mark() {
        check(
            &streamed(),
            true,
            r#"{"schema":"tokencanary.request/1","sequence":17,"target":"qwen-prod","endpoint":"http://vllm.svc:8000","probe":"short-chat","model":"qwen",
"api":"chat","cache":"cold","connection":"pooled","length":"exact","reused":true,"replaced_connection":false,"refused_reason":null,
"trace_id":"0123456789abcdef0123456789abcdef","span_id":"00f067aa0ba902c8","request_id":"tokencanary-0123456789abcdef0123456789abcdef","clock":"user","merged_chunks":0,"notes":[],"lagged":false,
"intended_unix_ns":1795953601000000000,"start_unix_ns":1795953601002250000,
"waits_ms":{"slot":2.0,"schedule_lag":0.25,"read_lag":null},"phases_ms":{"dns":null,"connect":null,"tls":null},"tcp":null,
"times_ms":{"sent":0.1,"headers":9.8,"first_byte":9.9,"first_event":10.0,"ttft":10.2,"ttfo":12.0,"last_token":43.0,"end":43.4},
"itl_ms":8.2,"first_chunk":"assumed","max_gap_ms":30.0,"stalls":1,"chunk_gaps_ms":[1.8,1.0,30.0],
"service_time_ms":43.0,"response_time_ms":45.25,
"tokens":{"input":130,"output":5,"reasoning":1,"cached":0,"source":"usage","requested_input":128,"requested_output":64,"requested_cached":null},
"chunks":4,"choices":null,"bytes":31244,"outcome":"ok","http_status":200,"finish_reason":"length","error":null,"answer":null,"certificate_expiry_unix":null,
"server":{"intended":{"running":3.0,"waiting":0.0,"swapped":null,"kv_usage":0.41,"prefix_hit_rate":null,"age_ms":180.5},"first_token":null,"end":null},"gpu":null,"phase":null,"phase_kind":"profiling","target_state":null,"counts":"now"}"#,
        );
    }

    #[test]
    fn a_refused_arrival_is_null_from_start_on() {
        check(
            &refused(),
            true,
            r#"{"schema":"tokencanary.request/1","sequence":18,"target":"qwen-prod","endpoint":"http://vllm.svc:8000","probe":"short-chat","model":"qwen",
"api":"chat","cache":"cold","connection":"pooled","length":null,"reused":null,"replaced_connection":false,"refused_reason":"in_flight",
"trace_id":"0123456789abcdef0123456789abcdef","span_id":"00f067aa0ba902c9","request_id":"tokencanary-0123456789abcdef0123456789abcdef","clock":"user","merged_chunks":0,"notes":[],"lagged":false,
"intended_unix_ns":1795953601000000000,"start_unix_ns":null,
"waits_ms":{"slot":null,"schedule_lag":null,"read_lag":null},"phases_ms":{"dns":null,"connect":null,"tls":null},"tcp":null,
"times_ms":{"sent":null,"headers":null,"first_byte":null,"first_event":null,"ttft":null,"ttfo":null,"last_token":null,"end":null},
"itl_ms":null,"first_chunk":null,"max_gap_ms":null,"stalls":null,"chunk_gaps_ms":[],
"service_time_ms":null,"response_time_ms":null,
"tokens":{"input":null,"output":null,"reasoning":null,"cached":null,"source":null,"requested_input":null,"requested_output":null,"requested_cached":null},
"chunks":null,"choices":null,"bytes":null,"outcome":"refused","http_status":null,"finish_reason":null,"error":null,"answer":null,"certificate_expiry_unix":null,
"server":{"intended":null,"first_token":null,"end":null},"gpu":null,"phase":null,"phase_kind":"profiling","target_state":null,"counts":"now"}"#,
        );
    }

    #[test]
    fn a_failed_connect_keeps_the_marks_it_reached() {
        check(
            &no_connection(),
            false,
            r#"{"schema":"tokencanary.request/1","sequence":19,"target":"qwen-prod","endpoint":"http://vllm.svc:8000","probe":"short-chat","model":null,
"api":"chat","cache":"cold","connection":"new","length":"exact","reused":false,"replaced_connection":false,"refused_reason":null,
"trace_id":"0123456789abcdef0123456789abcdef","span_id":"00f067aa0ba902ca","request_id":"tokencanary-0123456789abcdef0123456789abcdef","clock":"user","merged_chunks":0,"notes":[],"lagged":false,
"intended_unix_ns":1795953601000000000,"start_unix_ns":1795953601000060000,
"waits_ms":{"slot":0.0,"schedule_lag":0.06,"read_lag":null},"phases_ms":{"dns":0.5,"connect":null,"tls":null},"tcp":null,
"times_ms":{"sent":null,"headers":null,"first_byte":null,"first_event":null,"ttft":null,"ttfo":null,"last_token":null,"end":0.9},
"itl_ms":null,"first_chunk":null,"max_gap_ms":null,"stalls":null,"chunk_gaps_ms":[],
"service_time_ms":null,"response_time_ms":null,
"tokens":{"input":null,"output":null,"reasoning":null,"cached":null,"source":null,"requested_input":128,"requested_output":64,"requested_cached":null},
"chunks":0,"choices":null,"bytes":0,"outcome":"connect","http_status":null,"finish_reason":null,"error":{"kind":"connection refused","message":"tcp connect: \"refused\""},"answer":null,"certificate_expiry_unix":null,
"server":{"intended":null,"first_token":null,"end":null},"gpu":null,"phase":null,"phase_kind":"profiling","target_state":null,"counts":"now"}"#,
        );
    }

    #[test]
    fn a_unary_answer_has_phases_and_no_token_times() {
        check(
            &unary(),
            false,
            r#"{"schema":"tokencanary.request/1","sequence":20,"target":"qwen-prod","endpoint":"http://vllm.svc:8000","probe":"short-chat","model":"qwen",
"api":"chat","cache":"cold","connection":"pooled","length":"exact","reused":false,"replaced_connection":false,"refused_reason":null,
"trace_id":"0123456789abcdef0123456789abcdef","span_id":"00f067aa0ba902cb","request_id":"tokencanary-0123456789abcdef0123456789abcdef","clock":"user","merged_chunks":0,"notes":[],"lagged":false,
"intended_unix_ns":1795953601000000000,"start_unix_ns":1795953601000000000,
"waits_ms":{"slot":0.0,"schedule_lag":0.0,"read_lag":null},"phases_ms":{"dns":0.5,"connect":0.25,"tls":null},"tcp":null,
"times_ms":{"sent":0.81,"headers":320.0,"first_byte":320.0,"first_event":null,"ttft":null,"ttfo":null,"last_token":320.1,"end":320.1},
"itl_ms":null,"first_chunk":null,"max_gap_ms":null,"stalls":null,"chunk_gaps_ms":[],
"service_time_ms":320.1,"response_time_ms":320.1,
"tokens":{"input":130,"output":64,"reasoning":null,"cached":null,"source":"usage","requested_input":128,"requested_output":64,"requested_cached":null},
"chunks":0,"choices":null,"bytes":812,"outcome":"ok","http_status":200,"finish_reason":"stop","error":null,"answer":null,"certificate_expiry_unix":null,
"server":{"intended":{"running":3.0,"waiting":0.0,"swapped":null,"kv_usage":0.41,"prefix_hit_rate":null,"age_ms":180.5},"first_token":null,"end":null},"gpu":null,"phase":null,"phase_kind":"profiling","target_state":null,"counts":"now"}"#,
        );
    }

    /// Dotted paths of every field of `value`.
    fn paths(value: &serde_json::Value, at: &str, found: &mut Vec<String>) {
        for (name, inner) in value.as_object().into_iter().flatten() {
            let path = format!("{at}{name}");
            paths(inner, &format!("{path}."), found);
            if !inner.is_object() {
                found.push(path);
            }
        }
    }

    fn wanted() -> Wanted {
        Wanted {
            kind: KnownKind::Arithmetic,
            answer: "42".into(),
        }
    }

    #[test]
    fn a_question_says_what_was_wanted_and_what_became_of_it() {
        let mut observed = unary();
        observed.record.answer = Some(wanted().unjudged());
        observed.record.reply = Some("The answer is 42.".into());
        observed.record.judge();
        let options = RecordOptions {
            stall: STALL,
            gaps: false,
        };
        let line = to_json_line(&observed, &wall(), options);
        let part = r#""answer":{"kind":"arithmetic","wanted":"42","result":"right"}"#;
        assert!(line.contains(part), "{line}");
        assert!(!line.contains("The answer"), "{line}");
    }

    #[test]
    fn the_reference_page_names_every_field() {
        let page = include_str!("../../docs/records.md");
        let options = RecordOptions {
            stall: STALL,
            gaps: true,
        };
        let mut found = Vec::new();
        let mut asked = unary();
        asked.record.answer = Some(wanted().unjudged());
        let with_gpus = crate::export::fixture::with_gpus();
        for observed in [streamed(), no_connection(), asked, with_gpus] {
            let line = to_json_line(&observed, &wall(), options);
            let value = serde_json::from_str(&line).expect("a line is JSON");
            paths(&value, "", &mut found);
        }
        assert!(found.contains(&"server.intended.age_ms".to_owned()));
        assert!(found.contains(&"error.kind".to_owned()));
        for path in found {
            assert!(page.contains(&format!("`{path}`")), "`{path}`");
        }
    }

    #[test]
    fn what_was_odd_is_written_and_the_text_is_not() {
        let mut observed = streamed();
        let record = &mut observed.record;
        record.notes.add(Note::AfterEnd);
        record.notes.add(Note::Buffered);
        record.clock = ClockSource::Kernel;
        record.read_lag = Some(Duration::from_micros(35));
        record.chunks.merge_last(Duration::from_millis(1));
        record.choices = Some(Choices {
            count: 2,
            spans: Duration::from_secs(1),
        });
        record.certificate_expiry = Some(1_800_000_000);
        record.text = Some("hush".into());
        let options = RecordOptions {
            stall: STALL,
            gaps: false,
        };
        let line = to_json_line(&observed, &wall(), options);
        for part in [
            r#""clock":"kernel","merged_chunks":1,"notes":["buffered","after_end"]"#,
            r#""read_lag":0.035"#,
            r#""chunks":4,"choices":2"#,
            r#""certificate_expiry_unix":1800000000"#,
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(!line.contains("hush"), "{line}");
    }

    #[test]
    fn an_age_shows_no_float_noise() {
        let mut observed = streamed();
        if let Some(state) = &mut observed.at_intended {
            state.age_ms = 0.180_300_1 * 1e3 + 1e-11;
            state.kv_usage = None;
        }
        let options = RecordOptions {
            stall: STALL,
            gaps: false,
        };
        let line = to_json_line(&observed, &wall(), options);
        assert!(
            line.contains(r#""kv_usage":null,"prefix_hit_rate":null,"age_ms":180.3001}"#),
            "{line}"
        );
    }
}
