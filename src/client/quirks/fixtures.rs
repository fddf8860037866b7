//! The replay fixtures a to z: each with its values, and read alike however its bytes are cut.

mod natives;

use super::case::{
    A, Case, DONE, Expected, LENGTH, ROLE, STOP, THOUGHT, chat, counted, delta, ended, ok, sse,
    usage,
};
use super::peer::{answered, ask, only};
use crate::config::Limits;
use crate::measurement::TokenSource::{ChunkUsage, Chunks, Usage};
use crate::measurement::{Note, Outcome, RequestRecord};

/// A response and what must come out of it.
type Fixture = (&'static str, Case, Expected);

/// Three tokens at 30, 40 and 50 ms, counted by usage.
fn three() -> Expected {
    ok("stop").times(30, 50, 3).tokens(3, Usage).itl_us(10_000)
}

/// Two tokens at 30 and 40 ms, counted by usage.
fn two() -> Expected {
    ok("stop").times(30, 40, 2).tokens(2, Usage).itl_us(10_000)
}

/// Two tokens at 30 and 40 ms, and no more.
fn part(outcome: Outcome) -> Expected {
    ended(outcome).times(30, 40, 2).tokens(2, Chunks)
}

/// a, b, c, e, f, g, j, k, l: whole chat streams.
#[expect(clippy::too_many_lines, reason = "a table: one entry per fixture")]
fn whole() -> Vec<Fixture> {
    let azure = sse(
        r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[]}"#,
    );
    let commented = [": x\n\n", &A.replace('\n', "\r\n"), ": y\r\n\r\n"].concat();
    let wide = delta(r#""content":"é你😀""#);
    let both = delta(r#""reasoning":"a","reasoning_content":"a""#);
    let tool = |inside: &str| delta(&format!(r#""tool_calls":[{{"index":0,{inside}}}]"#));
    let other = A.replace("\"index\":0", "\"index\":1");
    let eight = |tokens: u32| counted(r#""content":"eight""#, tokens);
    let calls = sse(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#);
    let (u2, u3) = (usage(2), usage(3));
    let base = [
        (5, ROLE),
        (30, A),
        (40, A),
        (50, A),
        (51, STOP),
        (52, &u3),
        (53, DONE),
    ];
    let tail2 = [(41, STOP), (42, &*u2), (43, DONE)];
    vec![
        ("a", chat(&base), three()),
        ("b", chat(&[&[(2, &*azure)], &base[..]].concat()), three()),
        (
            "c",
            chat(
                &[
                    &[(5, ": s\n\n"), (30, &*commented), (40, A), (40, ":\n\n")],
                    &tail2[..],
                ]
                .concat(),
            ),
            two(),
        ),
        (
            "e",
            chat(&[&[(30, &*wide), (40, &*wide)], &tail2[..]].concat()),
            two(),
        ),
        (
            "f",
            chat(&[
                (5, ROLE),
                (30, THOUGHT),
                (40, &both),
                (50, A),
                (51, STOP),
                (52, &u3),
                (53, DONE),
            ]),
            three().ttfo(Some(50)),
        ),
        (
            "g",
            chat(&[
                (5, ROLE),
                (30, THOUGHT),
                (40, &both),
                (41, LENGTH),
                (42, &u2),
                (43, DONE),
            ]),
            two().ttfo(None).finish("length"),
        ),
        (
            "j",
            chat(&[
                (30, A),
                (32, &other),
                (40, A),
                (42, &other),
                (43, STOP),
                (44, &STOP.replace("\"index\":0", "\"index\":1")),
                (45, &usage(4)),
                (46, DONE),
            ]),
            ok("stop").times(30, 42, 4).tokens(4, Usage).itl_us(10_000),
        ),
        (
            "k",
            chat(&[
                (5, ROLE),
                (
                    30,
                    &tool(r#""id":"c","type":"function","function":{"name":"f","arguments":""}"#),
                ),
                (40, &tool(r#""function":{"arguments":"{}"}"#)),
                (41, &calls),
                (42, &u2),
                (43, DONE),
            ]),
            two().finish("tool_calls"),
        ),
        (
            "l",
            chat(&[
                (5, ROLE),
                (30, &eight(8)),
                (110, &eight(16)),
                (190, &eight(24)),
                (191, STOP),
                (192, &usage(24)),
                (193, DONE),
            ]),
            ok("stop")
                .times(30, 190, 3)
                .tokens(24, ChunkUsage)
                .itl_us(10_000),
        ),
    ]
}

/// h, i, m, s: what ends badly, or all at once.
fn broken() -> Vec<Fixture> {
    let error = sse(r#"{"error":{"message":"no","type":"server_error","code":500}}"#);
    let failed = || Outcome::StreamError;
    let burst = [ROLE, &A.repeat(12), LENGTH, &usage(12), DONE].concat();
    let json = r#"{"choices":[{"message":{"content":"aaa"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#;
    vec![
        (
            "h before",
            chat(&[(30, &error)]),
            ended(failed()).error("server_error"),
        ),
        (
            "h before, done",
            chat(&[(30, &error), (31, DONE)]),
            ended(failed()).error("server_error"),
        ),
        (
            "h after",
            chat(&[(30, A), (40, A), (50, &error)]),
            part(failed()).error("server_error"),
        ),
        (
            "h after, done",
            chat(&[(30, A), (40, A), (50, &error), (51, DONE)]),
            part(failed()).error("server_error"),
        ),
        (
            "i",
            chat(&[(30, A), (40, A)]),
            part(Outcome::StreamCut).error("no terminal event"),
        ),
        (
            "i finished",
            chat(&[(30, A), (40, A), (41, STOP)]),
            part(Outcome::Ok).finish("stop"),
        ),
        (
            "m",
            chat(&[(2_000, &burst)]),
            ok("length")
                .times(2_000, 2_000, 12)
                .tokens(12, Usage)
                .notes(&[Note::Buffered, Note::FirstTokenMerged]),
        ),
        (
            "s json",
            chat(&[(30, json)]),
            ended(Outcome::NotAStream)
                .last(30)
                .tokens(3, Usage)
                .finish("stop"),
        ),
        (
            "s html",
            chat(&[(30, "<html><body>busy</body></html>")]),
            ended(Outcome::Malformed),
        ),
    ]
}

/// u to z: oddities of framing and counting.
#[expect(clippy::too_many_lines, reason = "a table: one entry per fixture")]
fn odd() -> Vec<Fixture> {
    let marked = format!("\u{feff}{A}").replace('\n', "\r");
    let separated = delta("\"content\":\"a\u{2028}b\"");
    let text = r#""content":"a""#;
    let nothing = sse(r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}"#);
    let u2 = usage(2);
    let tail2 = [(41, STOP), (42, &*u2), (43, DONE)];
    let tail_cr: Vec<String> = [A, STOP, &u2, DONE]
        .iter()
        .map(|event| event.replace('\n', "\r"))
        .collect();
    vec![
        (
            "u",
            chat(
                &[
                    &[
                        (5, "data: : keepalive\n\n"),
                        (6, "data:\n\n"),
                        (7, "data: {}\n\n"),
                        (30, A),
                        (40, A),
                    ],
                    &tail2[..],
                ]
                .concat(),
            ),
            two().notes(&[Note::BadKeepAlive]),
        ),
        (
            "v",
            chat(&[
                (30, &marked),
                (40, &tail_cr[0]),
                (41, &tail_cr[1]),
                (42, &tail_cr[2]),
                (43, &tail_cr[3]),
            ]),
            two(),
        ),
        (
            "w",
            chat(&[&[(30, &*separated), (40, &*separated)], &tail2[..]].concat()),
            two(),
        ),
        (
            "x",
            chat(&[&[(30, A), (40, A)], &tail2[..], &[(44, DONE)]].concat()),
            two().notes(&[Note::AfterEnd]),
        ),
        (
            "y",
            chat(&[
                (30, &counted(text, 4)),
                (40, &counted(text, 3)),
                (50, &counted(text, 2)),
                (51, STOP),
                (52, &usage(3)),
                (53, DONE),
            ]),
            three().notes(&[Note::UsageNotCumulative]),
        ),
        (
            "z",
            chat(&[&[(30, &*nothing), (40, &*nothing)], &tail2[..]].concat()),
            two(),
        ),
        (
            "z without a reason",
            chat(&[(30, &*nothing), (40, &*nothing)]),
            part(Outcome::StreamCut).error("no terminal event"),
        ),
    ]
}

fn all() -> Vec<Fixture> {
    [whole(), broken(), natives::natives(), odd()]
        .into_iter()
        .flatten()
        .collect()
}

/// All of a record that the cuts of its bytes could change.
fn seen(record: &RequestRecord) -> String {
    let (timeline, chunks) = (&record.timeline, record.chunks.as_slice());
    let marks = [
        timeline.first_byte,
        timeline.first_event,
        timeline.first_token,
        timeline.first_output,
        timeline.last_token,
    ];
    let ends = (record.outcome, &record.finish_reason, &record.error);
    let counts = (&record.tokens, record.bytes, record.choices);
    let notes: Vec<&str> = record.notes.iter().map(Note::name).collect();
    format!(
        "{marks:?} {chunks:?} {ends:?} {counts:?} {notes:?} {:?}",
        record.text
    )
}

#[test]
fn each_fixture_has_its_values() {
    let wrong: Vec<&str> = all()
        .iter()
        .filter(|(_, case, expected)| {
            std::panic::catch_unwind(|| expected.check(&case.record())).is_err()
        })
        .map(|(name, ..)| *name)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn each_fixture_is_read_alike_under_every_cut() {
    for (name, case, _) in all() {
        let length = case.bytes().len();
        let whole = seen(&case.cut(&[]));
        for cut in 1..length {
            assert_eq!(seen(&case.cut(&[cut])), whole, "{name} cut at {cut}");
        }
        let single: Vec<usize> = (1..length).collect();
        assert_eq!(seen(&case.cut(&single)), whole, "{name} byte by byte");
    }
}

#[tokio::test(start_paused = true)]
async fn n_a_compressed_stream_is_read_byte_by_byte() {
    let text = [ROLE, A, A, STOP, &usage(2), DONE].concat();
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n";
    let mut steps = vec![(20, head.as_bytes().to_vec())];
    let packed = super::endings::gzip(&text);
    steps.extend(packed.iter().map(|byte| (1, vec![*byte])));
    let record = only(ask(vec![vec![steps]], Limits::PROBE).await);
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    assert_eq!((record.chunks.len(), record.tokens.output), (2, Some(2)));
    assert!(record.notes.has(Note::Compressed));
}

#[tokio::test(start_paused = true)]
async fn t_statuses_with_and_without_a_body() {
    for (head, status, said) in [
        (
            "HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n",
            429,
            "7",
        ),
        (
            "HTTP/1.1 429 Slow\r\nretry-after: Wed, 21 Oct 2026 07:28:00 GMT\r\ncontent-length: 0\r\n\r\n",
            429,
            "21 Oct 2026",
        ),
        ("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", 503, "503"),
        ("HTTP/1.1 524 Late\r\nconnection: close\r\n\r\n", 524, "524"),
    ] {
        let record = answered(&[(25, head)]).await;
        ended(Outcome::HttpStatus).check(&record);
        assert_eq!(record.http_status, Some(status));
        let message = record.error.expect("it says why").message;
        assert!(message.contains(said), "{message}");
    }
}
