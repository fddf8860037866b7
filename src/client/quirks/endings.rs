//! Quirks 35 to 49: errors in a 200, bodies that are no stream, what proxies and filters do.

use std::io::Write;
use std::time::Duration;

use super::case::{
    A, DONE, Expected, LENGTH, ROLE, STOP, at, chat, delta, ended, gaps, named, of, ok, sse, usage,
};
use super::peer::{Answered, HEAD, answered, ask, only};
use crate::config::Limits;
use crate::measurement::TokenSource::{Chunks, Usage};
use crate::measurement::{Api, Note, Outcome, RequestRecord};

/// Two tokens at 30 and 40 ms, 10 ms apart, counted by usage.
fn two() -> Expected {
    ok("stop").times(30, 40, 2).tokens(2, Usage).itl_us(10_000)
}

/// The same two, read through HTTP with `head` at 20 ms.
async fn two_after(head: &str) -> RequestRecord {
    answered(&[
        (20, head),
        (10, A),
        (10, A),
        (1, STOP),
        (1, &usage(2)),
        (1, DONE),
    ])
    .await
}

#[test]
pub(super) fn q35_an_error_in_a_200_is_a_failure_even_after_tokens() {
    let error =
        sse(r#"{"error":{"message":"engine died","type":"InternalServerError","code":500}}"#);
    let failed = || ended(Outcome::StreamError).error("InternalServerError");
    chat(&[(30, &error), (31, DONE)]).gives(&failed());
    chat(&[(30, &error)]).gives(&failed());
    let partial = failed().times(30, 40, 2).tokens(2, Chunks);
    chat(&[(30, A), (40, A), (50, &error), (51, DONE)]).gives(&partial);
    chat(&[(30, A), (40, A), (50, &error)]).gives(&partial);
    chat(&[(30, A), (40, A), (50, &error), (60, STOP), (61, DONE)]).gives(&partial.finish("stop"));
}

#[test]
pub(super) fn q36_every_shape_of_error_is_understood() {
    for (json, kind, message) in [
        (
            r#"{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}"#,
            "BadRequestError",
            "too long",
        ),
        (
            r#"{"object":"error","message":"too long","code":400}"#,
            "400",
            "too long",
        ),
        (
            r#"{"error":{"message":"no","type":"NotFoundError","param":"model","code":404}}"#,
            "NotFoundError",
            "no",
        ),
        (r#"{"error":{"message":"no","code":"x1"}}"#, "x1", "no"),
        (
            r#"{"error":{"message":"busy","http_status_code":429}}"#,
            "429",
            "busy",
        ),
        (r#"{"error":"model not found"}"#, "error", "model not found"),
        (r#"{"detail":"Not Found"}"#, "error", "Not Found"),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "overloaded_error",
            "Overloaded",
        ),
    ] {
        let record = chat(&[(30, &sse(json))]).gives(&ended(Outcome::StreamError).error(kind));
        let error = record.error.expect("it says why");
        assert_eq!(&*error.message, message, "{json}");
    }
    let tgi = "data:{\"error\":\"queue full\",\"error_type\":\"overloaded\"}\n\n";
    of(Api::Tgi, &[(30, tgi)]).gives(&ended(Outcome::StreamError).error("overloaded"));
    let ollama = "{\"error\":\"model runner stopped\"}\n";
    of(Api::Ollama, &[(30, ollama)]).gives(&ended(Outcome::StreamError).error("error"));
    // Old llama.cpp names the SSE field itself `error`.
    let llama = "error: {\"code\":500,\"message\":\"context\",\"type\":\"server_error\"}\n\n";
    for api in [Api::Llamacpp, Api::Chat] {
        of(api, &[(30, llama)]).gives(&ended(Outcome::StreamError).error("server_error"));
    }
}

#[test]
pub(super) fn q37_an_event_named_error_is_a_failure() {
    let overloaded = named(
        "error",
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    );
    for api in [Api::Messages, Api::Chat] {
        of(api, &[(30, &overloaded)]).gives(&ended(Outcome::StreamError).error("overloaded_error"));
    }
    let plain = named("error", "upstream gone");
    let flat = named("error", r#"{"message":"upstream gone"}"#);
    for event in [&plain, &flat] {
        let record = chat(&[(30, A), (40, A), (50, event)]).gives(
            &ended(Outcome::StreamError)
                .times(30, 40, 2)
                .tokens(2, Chunks),
        );
        let error = record.error.expect("it says why");
        assert!(error.message.contains("upstream gone"), "{error:?}");
    }
}

const WHOLE: &str = r#"{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"aaa"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#;

#[tokio::test(start_paused = true)]
pub(super) async fn q38_json_where_a_stream_was_asked_has_no_first_token() {
    let expected = ended(Outcome::NotAStream)
        .last(80)
        .tokens(3, Usage)
        .finish("stop");
    chat(&[(70, &WHOLE[..40]), (80, &WHOLE[40..])]).gives(&expected);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    expected.check(&answered(&[(70, head), (10, WHOLE)]).await);
    chat(&[(80, WHOLE)])
        .unary()
        .gives(&ok("stop").last(80).tokens(3, Usage));
}

#[tokio::test(start_paused = true)]
pub(super) async fn q39_a_page_where_a_stream_was_asked_is_kept_in_part() {
    let page = "<!DOCTYPE html><html><title>Sign in</title></html>";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n";
    for record in [
        answered(&[(20, head), (10, page)]).await,
        chat(&[(30, page)]).record(),
        chat(&[(20, "\r\n  <!DOC"), (30, &page[5..])]).record(),
    ] {
        ended(Outcome::Malformed).check(&record);
        let error = record.error.expect("it says why");
        assert!(error.message.contains("Sign in"), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
pub(super) async fn q40_the_content_type_is_not_insisted_on() {
    for kind in [
        "content-type: text/event-stream; charset=utf-8\r\n",
        "content-type: text/plain\r\n",
        "content-type: application/json\r\n",
        "Content-Type: TEXT/EVENT-STREAM;charset=UTF-8\r\n",
        "",
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{kind}connection: close\r\n\r\n");
        two().check(&two_after(&head).await);
    }
}

/// `text` as `encoding` writes it, flushed after each piece.
fn encoded(encoding: &str, pieces: &[&str]) -> Vec<Vec<u8>> {
    /// What was written since the last call; and what ending writes.
    type Taken<W> = (fn(&mut W) -> Vec<u8>, fn(W) -> Vec<u8>);
    fn each<W: Write>(mut writer: W, pieces: &[&str], (taken, ended): Taken<W>) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for piece in pieces {
            writer.write_all(piece.as_bytes()).expect("into memory");
            writer.flush().expect("into memory");
            out.push(taken(&mut writer));
        }
        out.push(ended(writer));
        out
    }
    let level = flate2::Compression::fast();
    match encoding {
        "gzip" => each(
            flate2::write::GzEncoder::new(Vec::new(), level),
            pieces,
            (
                |writer| std::mem::take(writer.get_mut()),
                |writer| writer.finish().expect("into memory"),
            ),
        ),
        "deflate" => each(
            flate2::write::ZlibEncoder::new(Vec::new(), level),
            pieces,
            (
                |writer| std::mem::take(writer.get_mut()),
                |writer| writer.finish().expect("into memory"),
            ),
        ),
        "br" => each(
            brotli::CompressorWriter::new(Vec::new(), 4096, 1, 20),
            pieces,
            (
                |writer| std::mem::take(writer.get_mut()),
                brotli::CompressorWriter::into_inner,
            ),
        ),
        _ => each(
            zstd::Encoder::new(Vec::new(), 1).expect("a good level"),
            pieces,
            (
                |writer| std::mem::take(writer.get_mut()),
                |writer| writer.finish().expect("into memory"),
            ),
        ),
    }
}

/// `text` in gzip.
pub(super) fn gzip(text: &str) -> Vec<u8> {
    encoded("gzip", &[text]).concat()
}

#[tokio::test(start_paused = true)]
pub(super) async fn q41_identity_is_asked_for_and_an_encoding_read_anyway() {
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\nconnection: close\r\n\r\n");
        let mut steps = vec![(20, head.into_bytes())];
        let pieces = encoded(encoding, &[A, A, STOP, &usage(2), DONE]);
        steps.extend([10, 10, 1, 1, 1, 1].into_iter().zip(pieces));
        let Answered { records, asked } = ask(vec![vec![steps]], Limits::PROBE).await;
        two().notes(&[Note::Compressed]).check(&records[0]);
        let asked = asked[0].to_ascii_lowercase();
        assert!(asked.contains("accept-encoding: identity\r\n"), "{asked}");
    }
}

#[test]
pub(super) fn q42_what_comes_at_once_at_the_end_was_buffered() {
    let burst = [ROLE, &A.repeat(20), LENGTH, &usage(20), DONE].concat();
    let record = chat(&[(1_000, &burst)]).gives(
        &ok("length")
            .times(1_000, 1_000, 20)
            .tokens(20, Usage)
            .notes(&[Note::Buffered, Note::FirstTokenMerged]),
    );
    assert!(record.is_buffered());
    // In several reads, all within 2 ms after a second of silence.
    let part = A.repeat(5);
    let end = [LENGTH, &usage(20), DONE].concat();
    let record = chat(&[
        (1_000, &part),
        (1_000, &part),
        (1_001, &part),
        (1_002, &part),
        (1_002, &end),
    ])
    .record();
    assert!(record.is_buffered(), "{:?}", record.notes);
    assert_eq!(record.itl(), None);
    // A slow first token and a fast decode are none of that.
    let paced: Vec<(u64, &str)> = (0..20).map(|token| (1_000 + 20 * token, A)).collect();
    let record = chat(&[&*paced, &[(1_381, &*end)]].concat()).record();
    assert!(!record.is_buffered(), "{:?}", record.notes);
    assert_eq!(record.itl(), Some(Duration::from_millis(20)));
}

#[tokio::test(start_paused = true)]
pub(super) async fn q43_the_end_of_the_connection_is_no_success_by_itself() {
    let cut = ended(Outcome::StreamCut).times(30, 40, 2).tokens(2, Chunks);
    for head in ["HTTP/1.0 200 OK\r\n\r\n", HEAD] {
        two().check(&two_after(head).await);
        cut.check(&answered(&[(20, head), (10, A), (10, A)]).await);
    }
}

#[tokio::test(start_paused = true)]
pub(super) async fn q44_a_connection_that_breaks_keeps_what_came() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("{:x}\r\n{A}\r\n", A.len());
    let half = format!("{:x}\r\n{}", A.len(), &A[..20]);
    let record = answered(&[(20, head), (10, &chunk), (10, &chunk), (10, &half)]).await;
    ended(Outcome::StreamCut)
        .times(30, 40, 2)
        .tokens(2, Chunks)
        .error("connection broken")
        .check(&record);
    assert_eq!(record.bytes, 2 * A.len() as u64 + 20);
    chat(&[(30, A), (40, A)]).broken().gives(
        &ended(Outcome::StreamCut)
            .times(30, 40, 2)
            .tokens(2, Chunks)
            .error("connection broken"),
    );
    // With a finish reason all that matters was there.
    chat(&[(30, A), (40, A), (41, STOP)])
        .broken()
        .gives(&ok("stop").times(30, 40, 2).tokens(2, Chunks));
}

#[tokio::test(start_paused = true)]
pub(super) async fn q45_retry_after_is_reported_and_nothing_is_retried() {
    for (status, field, said) in [
        ("429 Too Many Requests", "retry-after: 7", "7"),
        (
            "429 Too Many Requests",
            "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT",
            "Wed, 21 Oct 2026 07:28:00 GMT",
        ),
        ("503 Service Unavailable", "retry-after: 0", "0"),
    ] {
        let head = format!("HTTP/1.1 {status}\r\n{field}\r\ncontent-length: 0\r\n\r\n");
        let steps = vec![(20, head.into_bytes())];
        let answered = ask(vec![vec![steps]], Limits::PROBE).await;
        assert_eq!(answered.asked.len(), 1, "nothing is retried");
        let record = only(answered);
        ended(Outcome::HttpStatus).check(&record);
        assert_eq!(record.http_status, status[..3].parse().ok());
        let message = record.error.expect("it says why").message;
        assert!(message.contains(said), "{message}");
    }
}

#[tokio::test(start_paused = true)]
pub(super) async fn q46_a_status_of_a_proxy_has_its_true_time() {
    let patient = Limits {
        first_token: Some(Duration::from_secs(200)),
        total: Duration::from_mins(5),
        ..Limits::PROBE
    };
    for (status, ms) in [
        (408, 60_000),
        (504, 61_000),
        (524, 125_000),
        (529, 12),
        (499, 3),
    ] {
        let head = format!("HTTP/1.1 {status} Late\r\ncontent-length: 0\r\n\r\n");
        let steps = vec![(ms, head.into_bytes())];
        let record = only(ask(vec![vec![steps]], patient).await);
        ended(Outcome::HttpStatus).check(&record);
        assert_eq!(record.http_status, Some(status));
        let (start, end) = (record.timeline.start, record.timeline.end);
        let took = end.expect("it ended").since(start.expect("it started"));
        assert_eq!(took, Duration::from_millis(ms));
    }
}

#[test]
pub(super) fn q47_the_azure_prelude_is_no_token() {
    let now = r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}"#;
    let earlier = r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_annotations":[{"prompt_index":0,"content_filter_results":{}}]}"#;
    for prelude in [now, earlier] {
        let record = chat(&[
            (5, &sse(prelude)),
            (6, ROLE),
            (30, A),
            (40, A),
            (41, STOP),
            (42, &usage(2)),
            (43, DONE),
        ])
        .gives(&two());
        assert_eq!(record.timeline.first_event, Some(at(5)));
    }
}

#[test]
pub(super) fn q48_a_choice_without_delta_is_a_late_filter_result() {
    let filter = sse(
        r#"{"choices":[{"content_filter_offsets":{"check_offset":44,"start_offset":44,"end_offset":198},"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}},"finish_reason":null,"index":0,"logprobs":null}],"created":1,"id":"x","model":"gpt-4","object":"chat.completion.chunk"}"#,
    );
    let record = chat(&[
        (30, A),
        (35, &filter),
        (40, A),
        (41, STOP),
        (60, &filter),
        (61, &usage(2)),
        (62, DONE),
    ])
    .gives(&two());
    assert_eq!(gaps(&record), [10]);
}

#[tokio::test(start_paused = true)]
pub(super) async fn q49_a_content_filter_is_a_class_of_its_own() {
    let filtered = sse(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}"#);
    let noted = [Note::ContentFilter];
    chat(&[
        (30, A),
        (40, A),
        (41, &filtered),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two().finish("content_filter").notes(&noted));
    let record = chat(&[(5, ROLE), (30, &delta("")), (41, &filtered), (43, DONE)])
        .gives(&ended(Outcome::Empty).finish("content_filter").notes(&noted));
    assert_eq!(record.ttft(), None);
    let body = r#"{"error":{"message":"filtered","type":null,"param":"prompt","code":"content_filter","status":400}}"#;
    let refused = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let record = answered(&[(20, &refused)]).await;
    ended(Outcome::HttpStatus)
        .error("content_filter")
        .check(&record);
}
