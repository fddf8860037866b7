//! Quirks 50 to 63: who counts tokens, what is asked for, and what HTTP adds.

use std::time::Duration;

use serde_json::{Value, json};

use super::case::{
    A, DONE, EMPTY, Expected, ROLE, STOP, chat, delta, ended, gaps, named, of, ok, sse, usage,
};
use super::peer::{HEAD, answered, ask, only};
use crate::client::Protocol;
use crate::config::{LengthField, Limits, RequestConfig};
use crate::load::workload::Prompt;
use crate::measurement::TokenSource::{Chunks, Logprobs, TokenIds, Usage};
use crate::measurement::{Api, Outcome};

/// Two tokens at 30 and 40 ms, 10 ms apart, counted by usage.
fn two() -> Expected {
    ok("stop").times(30, 40, 2).tokens(2, Usage).itl_us(10_000)
}

/// A chat event whose log probabilities list `tokens`.
fn with_logprobs(tokens: &[&str]) -> String {
    let listed: Vec<Value> = tokens
        .iter()
        .map(|token| json!({"token": token, "logprob": -0.5, "bytes": token.as_bytes(), "top_logprobs": []}))
        .collect();
    let choice =
        json!({"index": 0, "delta": {"content": tokens.concat()}, "logprobs": {"content": listed}});
    sse(&json!({"choices": [choice]}).to_string())
}

#[test]
pub(super) fn q50_listed_log_probabilities_count_the_tokens_of_a_chunk() {
    let record = chat(&[
        (5, ROLE),
        (30, &with_logprobs(&["a", "b"])),
        (60, &with_logprobs(&["c"])),
        (90, &with_logprobs(&["d", "e", "f"])),
        (91, STOP),
        (92, DONE),
    ])
    .gives(
        &ok("stop")
            .times(30, 90, 3)
            .tokens(6, Logprobs)
            .itl_us(15_000),
    );
    assert_eq!(record.tokens.in_first_chunk, Some(2));
    let text = sse(
        r#"{"choices":[{"index":0,"text":"ab","logprobs":{"text_offset":[0,1],"token_logprobs":[-1.0,-2.0],"tokens":["a","b"],"top_logprobs":[null,null]}}]}"#,
    );
    let stop = sse(r#"{"choices":[{"index":0,"text":"","finish_reason":"stop","logprobs":null}]}"#);
    of(
        Api::Completions,
        &[(30, &text), (50, &text), (51, &stop), (52, DONE)],
    )
    .gives(
        &ok("stop")
            .times(30, 50, 2)
            .tokens(4, Logprobs)
            .itl_us(10_000),
    );
}

/// A chat event of this text and these token ids.
fn with_ids(text: &str, ids: &str) -> String {
    sse(&format!(
        r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"token_ids":{ids}}}]}}"#
    ))
}

#[test]
pub(super) fn q51_listed_token_ids_are_an_exact_count() {
    let record = chat(&[
        (5, ROLE),
        (30, &with_ids("ab", "[11,12]")),
        (60, &with_ids("c", "[13]")),
        (90, &with_ids("def", "[14,15,16]")),
        (91, STOP),
        (92, DONE),
    ])
    .gives(
        &ok("stop")
            .times(30, 90, 3)
            .tokens(6, TokenIds)
            .itl_us(15_000),
    );
    assert_eq!(record.tokens.in_first_chunk, Some(2));
    let null = with_ids("a", "null");
    chat(&[
        (30, &null),
        (40, &null),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn q52_held_back_text_makes_gaps_that_are_no_token_gaps() {
    let burst = delta(r#""content":"aaa""#);
    let record = chat(&[
        (30, A),
        (40, A),
        (60, EMPTY),
        (80, EMPTY),
        (100, &burst),
        (101, STOP),
        (102, &usage(8)),
        (103, DONE),
    ])
    .gives(&ok("stop").times(30, 100, 3).tokens(8, Usage).itl_us(10_000));
    assert_eq!(gaps(&record), [10, 60]);
    // The stop string was cut off and never shown.
    chat(&[
        (30, A),
        (40, A),
        (60, EMPTY),
        (61, STOP),
        (62, &usage(3)),
        (63, DONE),
    ])
    .gives(&ok("stop").times(30, 40, 2).tokens(3, Usage).itl_us(5_000));
}

#[test]
pub(super) fn q53_what_the_server_counted_comes_before_what_text_suggests() {
    let spaces = delta(&format!(r#""content":"{}""#, " ".repeat(60)));
    chat(&[
        (30, &spaces),
        (40, &spaces),
        (41, STOP),
        (42, &usage(101)),
        (43, DONE),
    ])
    .gives(&ok("stop").times(30, 40, 2).tokens(101, Usage).itl_us(100));
}

#[test]
pub(super) fn q54_a_chunk_of_no_tokens_divides_nothing() {
    let (one, none) = (with_ids("a", "[1]"), with_ids("\u{fffd}", "[]"));
    chat(&[(30, &one), (40, &none), (50, &one), (51, STOP), (53, DONE)]).gives(
        &ok("stop")
            .times(30, 50, 3)
            .tokens(2, TokenIds)
            .itl_us(20_000),
    );
    chat(&[(30, A), (40, A), (41, STOP), (42, &usage(1)), (43, DONE)])
        .gives(&ok("stop").times(30, 40, 2).tokens(1, Usage));
}

/// The body of a request for 16 tokens.
fn body(api: Api, style: RequestConfig) -> Value {
    let protocol = Protocol::new(api, style).expect("no body of ours");
    let prompt = Prompt {
        text: "hi".into(),
        input_tokens: Some(1),
        output_tokens: Some(16),
        ..Prompt::default()
    };
    let body = protocol
        .body(&protocol.ask("m", &prompt, true))
        .expect("no template");
    serde_json::from_slice(&body).expect("JSON")
}

#[tokio::test(start_paused = true)]
pub(super) async fn q55_usage_is_asked_for_unless_the_operator_says_no() {
    for api in [Api::Chat, Api::Completions] {
        let asked = body(api, RequestConfig::default());
        assert_eq!(asked["stream_options"], json!({"include_usage": true}));
        let style = RequestConfig {
            usage: false,
            ..RequestConfig::default()
        };
        assert_eq!(body(api, style).get("stream_options"), None, "{api:?}");
    }
    let refusal =
        r#"{"error":{"message":"unknown field `stream_options`","type":"invalid_request_error"}}"#;
    let head = format!(
        "HTTP/1.1 422 Unprocessable\r\ncontent-length: {}\r\n\r\n{refusal}",
        refusal.len()
    );
    let all = ask(vec![vec![vec![(20, head.into_bytes())]]], Limits::PROBE).await;
    assert_eq!(all.asked.len(), 1, "nothing is retried");
    ended(Outcome::HttpStatus)
        .error("invalid_request_error")
        .check(&only(all));
}

#[test]
pub(super) fn q56_the_name_of_the_length_is_a_setting() {
    let plain = body(Api::Chat, RequestConfig::default());
    assert_eq!(plain["max_tokens"], 16);
    assert_eq!(plain.get("max_completion_tokens"), None);
    let style = RequestConfig {
        length: LengthField::MaxCompletionTokens,
        ..RequestConfig::default()
    };
    let renamed = body(Api::Chat, style);
    assert_eq!(renamed["max_completion_tokens"], 16);
    assert_eq!(renamed.get("max_tokens"), None);
}

#[test]
pub(super) fn q57_an_answer_without_text_has_no_first_token() {
    let start = named(
        "message_start",
        r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":5,"output_tokens":1}}}"#,
    );
    let stop = named(
        "message_delta",
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":0}}"#,
    );
    let last = named("message_stop", r#"{"type":"message_stop"}"#);
    // design: a success needs a token; `empty` is what became of it.
    of(Api::Messages, &[(10, &start), (20, &stop), (21, &last)])
        .gives(&ended(Outcome::Empty).finish("end_turn").tokens(0, Usage));
    chat(&[(5, ROLE), (20, STOP), (21, &usage(0)), (22, DONE)])
        .gives(&ended(Outcome::Empty).finish("stop").tokens(0, Usage));
}

#[test]
pub(super) fn q58_a_single_chunk_has_a_first_token_and_no_time_between() {
    let all = sse(
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"aaaa"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":4}}"#,
    );
    let record = chat(&[(30, &all), (31, DONE)]).record();
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    assert_eq!(record.ttft(), Some(Duration::from_millis(30)));
    assert_eq!(record.timeline.last_token, record.timeline.first_token);
    assert_eq!((record.itl(), record.output_rate()), (None, None));
    assert_eq!(record.tokens.output, Some(4));
}

#[test]
pub(super) fn q59_a_role_in_every_chunk_is_ignored() {
    let text = delta(r#""role":"assistant","content":"a""#);
    let role = delta(r#""role":"assistant""#);
    chat(&[
        (5, &role),
        (30, &text),
        (40, &text),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
}

#[test]
pub(super) fn q60_clocks_in_the_body_are_nobodys() {
    let created = |text: &str, created: &str| {
        sse(&format!(
            r#"{{"created":{created},"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#
        ))
    };
    chat(&[
        (30, &created("a", "1747000000")),
        (40, &created("a", "-5")),
        (41, &created("", "1e300")),
        (42, STOP),
        (43, &usage(2)),
        (44, DONE),
    ])
    .gives(&two());
    let record = chat(&[(30, &created("", "1747000000")), (40, STOP), (41, DONE)])
        .gives(&ended(Outcome::Empty).finish("stop"));
    assert_eq!((record.ttft(), record.response_ttft()), (None, None));
}

#[tokio::test(start_paused = true)]
pub(super) async fn q61_early_hints_redirects_and_trailers() {
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n";
    let usage_2 = usage(2);
    two().check(
        &answered(&[
            (5, hints),
            (15, HEAD),
            (10, A),
            (10, A),
            (1, STOP),
            (1, &usage_2),
            (1, DONE),
        ])
        .await,
    );
    for status in [301, 302, 307, 308] {
        let head = format!(
            "HTTP/1.1 {status} Elsewhere\r\nlocation: http://elsewhere/v1\r\ncontent-length: 0\r\n\r\n"
        );
        let all = ask(vec![vec![vec![(20, head.into_bytes())]]], Limits::PROBE).await;
        assert_eq!(all.asked.len(), 1, "no redirect is followed");
        let record = only(all);
        ended(Outcome::HttpStatus).check(&record);
        assert_eq!(record.http_status, Some(status));
        let error = record.error.expect("it says why");
        assert!(error.message.contains("http://elsewhere/v1"), "{error:?}");
    }
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-t\r\n\r\n";
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let record = answered(&[
        (20, head),
        (10, &chunk(A)),
        (10, &chunk(A)),
        (1, &chunk(STOP)),
        (1, &chunk(&usage_2)),
        (1, &chunk(DONE)),
        (1, "0\r\nx-t: 1\r\n\r\n"),
    ])
    .await;
    two().check(&record);
}

#[tokio::test(start_paused = true)]
pub(super) async fn q62_every_2xx_is_a_success() {
    for status in [
        "200 OK",
        "201 Created",
        "202 Accepted",
        "203 Other",
        "206 Part",
    ] {
        let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n\r\n");
        let record = answered(&[
            (20, &head),
            (10, A),
            (10, A),
            (1, STOP),
            (1, &usage(2)),
            (1, DONE),
        ])
        .await;
        two().check(&record);
    }
    let record = answered(&[(20, "HTTP/1.1 204 No Content\r\n\r\n")]).await;
    assert_ne!(record.outcome, Outcome::Ok, "nothing is no answer");
}

#[test]
pub(super) fn q63_json_over_several_data_lines_is_joined() {
    let pretty = "data: {\ndata:   \"choices\": [\ndata:     {\"index\": 0,\ndata:      \"delta\": {\"content\": \"a\"}}\ndata:   ]\ndata: }\n\n";
    chat(&[
        (30, pretty),
        (40, pretty),
        (41, STOP),
        (42, &usage(2)),
        (43, DONE),
    ])
    .gives(&two());
    let crlf = pretty.replace('\n', "\r\n");
    chat(&[(30, &crlf), (40, &crlf), (41, STOP), (43, DONE)])
        .gives(&ok("stop").times(30, 40, 2).tokens(2, Chunks));
}
