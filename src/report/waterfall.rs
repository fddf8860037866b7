//! One request as a waterfall in text, for `check`.
//!
//! Every phase is a row: how long it took, when it ended counted from the start, and a bar on
//! a scale that begins when the request was due. A phase that was not reached, or that a
//! reused connection does not have, is `–` without a bar. All times come from the record.

use std::fmt::Write as _;
use std::time::Duration;

use super::hint::hint;
use super::number::{UNKNOWN, decimal, grouped, millis, percent, span};
use crate::clock::MonoTime;
use crate::measurement::{
    ClockSource, Note, Observed, Outcome, RequestRecord, StallRule, StateAt, plain,
};

/// Whether the text may hold ANSI colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// For a terminal that shows them.
    Ansi,
    /// For files, pipes and tests.
    Off,
}

/// Columns of the bars: the whole line stays within 80.
const WIDTH: u32 = 44;

struct Phase {
    name: &'static str,
    from: Option<MonoTime>,
    to: Option<MonoTime>,
    /// ANSI colour code of the bar.
    colour: u8,
}

/// The waterfall of one request, its numbers, and what became of it, each on lines of its own.
#[must_use]
pub fn waterfall(observed: &Observed, stall: StallRule, colour: Colour) -> String {
    let record = &observed.record;
    let mut out = headline(record);
    let phases = phases(record);
    let scale = phases
        .iter()
        .filter_map(|phase| phase.to)
        .max()
        .map_or(Duration::ZERO, |last| last.since(record.timeline.intended));
    line(
        &mut out,
        format_args!("  {:<22}{:>10}{:>10}", "phase", "took ms", "ended at"),
    );
    for phase in &phases {
        line(
            &mut out,
            format_args!("{}", phase_line(record, phase, scale, colour)),
        );
    }
    for text in facts(record, stall) {
        line(&mut out, format_args!("  {text}"));
    }
    line(&mut out, format_args!("  {}", server(observed.at_intended)));
    line(&mut out, format_args!("  trace {}", record.ids.trace_hex()));
    line(&mut out, format_args!("  {}", verdict(record, colour)));
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{}", text.to_string().trim_end()).expect("writing to a string cannot fail");
}

fn headline(record: &RequestRecord) -> String {
    let stream = &record.stream;
    let model = match stream.model() {
        "" => "model not known",
        name => &plain(name),
    };
    format!(
        "{} · {} · {model} · {} · probe {} · {} · {}\n",
        stream.target,
        stream.endpoint,
        stream.api.name(),
        stream.probe,
        stream.cache.name(),
        match record.reused {
            Some(true) => "reused connection",
            Some(false) => "new connection",
            None => "no connection",
        },
    )
}

/// The phases in order, each from the last mark that was reached before it to its own.
fn phases(record: &RequestRecord) -> Vec<Phase> {
    let marks = &record.timeline;
    let (last, colour_of_last) = match record.outcome {
        Outcome::Ok => ("end of stream", 32),
        _ => ("until it failed", 31),
    };
    // Without streaming there is one piece, whose end stands for the last token.
    let to_last = if record.stream.streaming {
        "first → last token"
    } else {
        "rest of the body"
    };
    let rows = [
        ("slot wait", marks.slot_free, 90),
        ("own lag", marks.start, 95),
        ("dns", marks.resolved, 35),
        ("connect", marks.connected, 35),
        ("tls", marks.tls_done, 35),
        ("send request", marks.sent, 34),
        ("wait for headers", marks.headers, 34),
        ("headers → first byte", marks.first_byte, 33),
        ("first byte → token", marks.first_token, 33),
        (to_last, marks.last_token, 32),
        (last, marks.end, colour_of_last),
    ];
    let mut before = marks.intended;
    rows.into_iter()
        .map(|(name, to, colour)| {
            let phase = Phase {
                name,
                from: to.map(|_| before),
                to,
                colour,
            };
            before = to.map_or(before, |to| to.max(before));
            phase
        })
        .collect()
}

fn phase_line(record: &RequestRecord, phase: &Phase, scale: Duration, colour: Colour) -> String {
    let (Some(from), Some(to)) = (phase.from, phase.to) else {
        return format!("  {:<22}{UNKNOWN:>10}{UNKNOWN:>10}", phase.name);
    };
    let ended = record
        .timeline
        .start
        .filter(|start| to >= *start)
        .map_or(UNKNOWN.to_owned(), |start| millis(to.since(start)));
    let intended = record.timeline.intended;
    let (gap, bar) = bar(from.since(intended), to.since(intended), scale);
    let bar = match colour {
        Colour::Ansi => format!("\u{1b}[{}m{bar}\u{1b}[0m", phase.colour),
        Colour::Off => bar,
    };
    format!(
        "  {:<22}{:>10}{ended:>10}  {}{bar}",
        phase.name,
        millis(to.since(from)),
        " ".repeat(gap)
    )
}

/// Blank columns and then the bar; a phase shorter than half a column is a thin stroke.
fn bar(from: Duration, to: Duration, scale: Duration) -> (usize, String) {
    if scale.is_zero() {
        return (0, "▏".to_owned());
    }
    let column = |at: Duration| {
        let nanos = at.as_nanos() * u128::from(WIDTH) * 2 / scale.as_nanos();
        usize::try_from(nanos.div_ceil(2)).expect("a mark lies within the scale")
    };
    let (first, last) = (column(from), column(to));
    let last_column = usize::try_from(WIDTH).expect("80 columns fit any integer") - 1;
    match last.saturating_sub(first) {
        0 => (first.min(last_column), "▏".to_owned()),
        columns => (first, "█".repeat(columns)),
    }
}

fn facts(record: &RequestRecord, stall: StallRule) -> Vec<String> {
    let ms = |value: Option<Duration>| {
        value.map_or(UNKNOWN.to_owned(), |value| format!("{} ms", millis(value)))
    };
    let mut lines = vec![format!(
        "TTFT {} · ITL {} · service time {} · response time {}",
        ms(record.ttft()),
        ms(record.itl()),
        ms(record.service_time()),
        ms(record.response_time()),
    )];
    let count =
        |value: Option<u32>| value.map_or(UNKNOWN.to_owned(), |value| grouped(u64::from(value)));
    let source = record.tokens.source.map_or(String::new(), |source| {
        format!(" (counted from {})", source.name())
    });
    let rate = record
        .output_rate()
        .map_or(UNKNOWN.to_owned(), |rate| decimal(rate, 1));
    lines.push(format!(
        "tokens {} in, {} out{source} · {rate} tokens/s after the first",
        count(record.tokens.input),
        count(record.tokens.output),
    ));
    if !record.chunks.is_empty() {
        lines.push(format!(
            "{} chunks with tokens, {} bytes · longest gap {} · {} stalls",
            record.chunks.len(),
            grouped(record.bytes),
            ms(record.max_gap()),
            record.stalls(stall).len(),
        ));
        let merged = record.chunks.merged();
        if record.clock != ClockSource::User || merged > 0 {
            lines.push(format!(
                "clock {}, {} of {} chunks merged with later bytes · read lag {}",
                record.clock.name(),
                merged,
                record.chunks.len(),
                ms(record.read_lag()),
            ));
        }
    }
    let notes: Vec<&str> = record.notes.iter().map(Note::name).collect();
    if !notes.is_empty() {
        lines.push(format!("notes {}", notes.join(", ")));
    }
    lines
}

fn server(state: Option<StateAt>) -> String {
    let Some(state) = state else {
        return "server when it was due: no fresh reading of its metrics page".to_owned();
    };
    let number = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), |value| format!("{value}"));
    format!(
        "server when it was due: {} running, {} waiting, KV cache {}, read {} before",
        number(state.running),
        number(state.waiting),
        state.kv_usage.map_or(UNKNOWN.to_owned(), percent),
        span(Duration::from_secs_f64((state.age_ms / 1e3).max(0.0))),
    )
}

fn verdict(record: &RequestRecord, colour: Colour) -> String {
    let mut parts = vec![record.outcome.name().to_owned()];
    if let Some(reason) = record.refused {
        parts.push(format!("reason `{}`", reason.name()));
    }
    if let Some(status) = record.http_status {
        parts.push(format!("HTTP {status}"));
    }
    if let Some(reason) = &record.finish_reason {
        parts.push(format!("finish reason `{}`", plain(reason)));
    }
    if let Some(error) = &record.error {
        parts.push(plain(&format!("{}: {}", error.kind, error.message)));
    }
    if record.is_lagged() {
        parts.push("lagged: we were late ourselves".to_owned());
    }
    let (mark, code) = if record.outcome == Outcome::Ok {
        ("✓", 32)
    } else {
        ("✕", 31)
    };
    let mut text = format!("{mark} {}", parts.join(" · "));
    if colour == Colour::Ansi {
        text = format!("\u{1b}[{code}m{text}\u{1b}[0m");
    }
    if let Some(hint) = hint(record) {
        text.push_str("\n    hint: ");
        text.push_str(hint);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use super::*;
    use crate::measurement::{
        Api, CacheMode, Chunk, ConnectionPolicy, LengthMode, RequestError, Stream, StreamId,
        TokenSource, TraceIds,
    };

    const STALL: StallRule = StallRule {
        factor: 10.0,
        floor: Duration::from_millis(250),
    };

    fn at(tenths: u64) -> MonoTime {
        MonoTime::from_nanos(tenths * 100_000)
    }

    fn due() -> RequestRecord {
        let model = OnceLock::new();
        model.get_or_init(|| "tiny".into());
        let stream = Arc::new(Stream {
            id: StreamId(0),
            target_index: 0,
            target: "qwen-prod".into(),
            endpoint: "http://vllm.svc:8000".into(),
            probe: "short-chat".into(),
            api: Api::Chat,
            cache: CacheMode::Cold,
            connection: ConnectionPolicy::New,
            length: LengthMode::Exact,
            streaming: true,
            closed_loop: false,
            model,
        });
        RequestRecord::due(
            7,
            stream,
            TraceIds {
                trace: 0xabc,
                span: 1,
            },
            at(1_000),
        )
    }

    fn answered() -> RequestRecord {
        let mut record = due();
        let marks = &mut record.timeline;
        marks.slot_free = Some(at(1_000));
        marks.start = Some(at(1_001));
        marks.resolved = Some(at(1_003));
        marks.connected = Some(at(1_013));
        marks.sent = Some(at(1_014));
        marks.headers = Some(at(1_401));
        marks.first_byte = Some(at(1_401));
        marks.first_token = Some(at(1_441));
        marks.first_output = Some(at(1_441));
        marks.last_token = Some(at(1_641));
        marks.end = Some(at(1_643));
        for (read, tenths) in [(2, 1_441), (3, 1_541), (4, 1_641)] {
            record.chunks.push(Chunk::exact(at(tenths), read));
        }
        record.reused = Some(false);
        record.tokens.input = Some(128);
        record.tokens.output = Some(3);
        record.tokens.source = Some(TokenSource::Usage);
        record.bytes = 1_234;
        record.outcome = Outcome::Ok;
        record.http_status = Some(200);
        record.finish_reason = Some("length".into());
        record
    }

    #[test]
    fn a_whole_answer_shows_every_phase() {
        let observed = Observed {
            record: answered(),
            at_intended: Some(StateAt {
                running: Some(3.0),
                waiting: Some(0.0),
                swapped: None,
                kv_usage: Some(0.412),
                prefix_hit_rate: None,
                age_ms: 1_800.0,
            }),
            at_first_token: None,
            at_end: None,
            gpu: None,
        };
        insta::assert_snapshot!(waterfall(&observed, STALL, Colour::Off), @r"
        qwen-prod · http://vllm.svc:8000 · tiny · chat · probe short-chat · cold · new connection
          phase                    took ms  ended at
          slot wait                   0.00         –  ▏
          own lag                     0.10      0.00  ▏
          dns                         0.20      0.20  ▏
          connect                     1.00      1.20  █
          tls                            –         –
          send request                0.10      1.30   ▏
          wait for headers           38.70     40.00   ██████████████████████████
          headers → first byte        0.00     40.00                             ▏
          first byte → token          4.00     44.00                             ███
          first → last token         20.00     64.00                                ██████████████
          end of stream               0.20     64.20                                             ▏
          TTFT 44.00 ms · ITL 10.00 ms · service time 64.00 ms · response time 64.10 ms
          tokens 128 in, 3 out (counted from usage) · 100.0 tokens/s after the first
          3 chunks with tokens, 1,234 bytes · longest gap 10.00 ms · 0 stalls
          server when it was due: 3 running, 0 waiting, KV cache 41 %, read 1.8 s before
          trace 00000000000000000000000000000abc
          ✓ ok · HTTP 200 · finish reason `length`
        ");
    }

    #[test]
    fn a_failure_says_what_it_reached_and_where_to_look() {
        let mut record = due();
        record.timeline.slot_free = Some(at(1_000));
        record.timeline.start = Some(at(1_000));
        record.timeline.end = Some(at(1_020));
        record.outcome = Outcome::Connect;
        record.error = Some(RequestError {
            kind: "connection refused".into(),
            message: "127.0.0.1:9 refused".into(),
        });
        let observed = Observed {
            record,
            at_intended: None,
            at_first_token: None,
            at_end: None,
            gpu: None,
        };
        insta::assert_snapshot!(waterfall(&observed, STALL, Colour::Off), @r"
        qwen-prod · http://vllm.svc:8000 · tiny · chat · probe short-chat · cold · no connection
          phase                    took ms  ended at
          slot wait                   0.00      0.00  ▏
          own lag                     0.00      0.00  ▏
          dns                            –         –
          connect                        –         –
          tls                            –         –
          send request                   –         –
          wait for headers               –         –
          headers → first byte           –         –
          first byte → token             –         –
          first → last token             –         –
          until it failed             2.00      2.00  ████████████████████████████████████████████
          TTFT – · ITL – · service time – · response time –
          tokens – in, – out · – tokens/s after the first
          server when it was due: no fresh reading of its metrics page
          trace 00000000000000000000000000000abc
          ✕ connect · connection refused: 127.0.0.1:9 refused
            hint: no connection: is the server running, and are host and port in `url` right?
        ");
    }

    #[test]
    fn an_answer_in_one_piece_has_no_token_phases() {
        let mut record = answered();
        let stream = Arc::get_mut(&mut record.stream).expect("no one else has it");
        stream.streaming = false;
        record.timeline.first_token = None;
        record.timeline.first_output = None;
        let observed = Observed {
            record,
            at_intended: None,
            at_first_token: None,
            at_end: None,
            gpu: None,
        };
        let text = waterfall(&observed, STALL, Colour::Off);
        let row = text.lines().find(|line| line.contains("rest of the body"));
        assert!(
            row.is_some_and(|row| row.contains("24.00     64.00")),
            "{text}"
        );
    }

    #[test]
    fn colours_come_only_when_asked_for() {
        let observed = Observed {
            record: answered(),
            at_intended: None,
            at_first_token: None,
            at_end: None,
            gpu: None,
        };
        assert!(!waterfall(&observed, STALL, Colour::Off).contains('\u{1b}'));
        assert!(waterfall(&observed, STALL, Colour::Ansi).contains("\u{1b}[32m✓ ok"));
    }
}
