//! What is asked of chat completions and their kin, and what each event says.

use super::*;
use crate::client::protocol::{Protocol, Usage};
use crate::config::RequestConfig;
use crate::load::workload::Prompt;
use crate::measurement::Api;

fn said(json: &str) -> Said<'_> {
    let mut said = Said::default();
    let event = Event {
        name: b"",
        data: json.as_bytes(),
    };
    read(event, &mut said).expect(json);
    said
}

fn check(json: &str, expected: &[(u32, Channel, &str)]) {
    let said = said(json);
    let pieces: Vec<_> = said
        .pieces()
        .map(|piece| (piece.choice, piece.channel, &*piece.text))
        .collect();
    assert_eq!(pieces, expected, "{json}");
}

#[test]
fn frames_without_text_carry_no_token() {
    for json in [
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"","tool_calls":null}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":[],"reasoning":null,"audio":null}}]}"#,
        r#"{"choices":[{"index":0,"delta":null,"logprobs":null,"token_ids":null}]}"#,
        r#"{"choices":[{"index":0,"finish_reason":""}]}"#,
        r#"{"choices":[{"index":0,"content_filter_offsets":{},"finish_reason":null}]}"#,
        r#"{"choices":[],"usage":null}"#,
        r#"{"choices":[],"prompt_filter_results":[],"model":"","id":"","created":0}"#,
        r#"{"choices":null,"error":null,"detail":null}"#,
        r#"{"choices":[null,3,"x"],"error":""}"#,
        r#"{"choices":{}}"#,
        "{}",
    ] {
        assert_eq!(said(json), Said::default(), "{json}");
    }
}

#[test]
fn any_channel_can_carry_the_first_token() {
    use Channel::{Output, Reasoning, Refusal, Tool};
    for (delta, expected) in [
        (
            r#"{"content":"a","tool_calls":null}"#,
            &[(0, Output, "a")][..],
        ),
        (
            r#"{"role":"assistant","content":"\u00e9\n"}"#,
            &[(0, Output, "é\n")],
        ),
        (r#"{"content":"a\u2028b"}"#, &[(0, Output, "a\u{2028}b")]),
        (r#"{"refusal":"no"}"#, &[(0, Refusal, "no")]),
        (
            r#"{"content":null,"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]}"#,
            &[(0, Tool, "f")],
        ),
        (
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}"#,
            &[(0, Tool, "{")],
        ),
        (
            r#"{"tool_calls":[{"function":{"name":"f","arguments":"{"}},{"function":null},{}]}"#,
            &[(0, Tool, "f"), (0, Tool, "{")],
        ),
        (
            r#"{"function_call":{"name":"f","arguments":"{"}}"#,
            &[(0, Tool, "f"), (0, Tool, "{")],
        ),
        (r#"{"reasoning":"hm"}"#, &[(0, Reasoning, "hm")]),
        (r#"{"reasoning_content":"hm"}"#, &[(0, Reasoning, "hm")]),
        (
            r#"{"reasoning":"","reasoning_content":"hm"}"#,
            &[(0, Reasoning, "hm")],
        ),
        (
            r#"{"reasoning":"hm","reasoning_content":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}"#,
            &[(0, Reasoning, "hm")],
        ),
        (
            r#"{"content":"","reasoning_details":[{"type":"reasoning.summary","summary":"hm"},{"type":"reasoning.encrypted","data":"x"}]}"#,
            &[(0, Reasoning, "hm")],
        ),
        (
            r#"{"content":[{"type":"text","text":"a"},"b",{"type":"thinking","thinking":[{"type":"text","text":"c"}]}]}"#,
            &[(0, Output, "a"), (0, Output, "b"), (0, Reasoning, "c")],
        ),
        (
            r#"{"audio":{"id":"x","transcript":"a"}}"#,
            &[(0, Output, "a")],
        ),
        (
            r#"{"content":7,"refusal":{"text":"no"}}"#,
            &[(0, Refusal, "no")],
        ),
    ] {
        check(&format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#), expected);
    }
    let sound = said(r#"{"choices":[{"delta":{"audio":{"data":"AAAA"}}}]}"#);
    assert!(sound.has_token() && sound.pieces().next().is_none());
}

#[test]
fn several_choices_are_told_apart() {
    check(
        r#"{"choices":[{"index":1,"delta":{"content":"a"}},{"index":0,"delta":{"content":"b"}}]}"#,
        &[(1, Channel::Output, "a"), (0, Channel::Output, "b")],
    );
}

#[test]
fn usage_and_finish_reason_may_share_a_frame() {
    let said = said(
        r#"{"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":22,"completion_tokens":12,"total_tokens":34,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":5}}}"#,
    );
    assert!(!said.has_token());
    assert_eq!(said.finish.as_deref(), Some("length"));
    assert_eq!(
        said.usage,
        Some(Usage {
            input: Some(22),
            output: Some(12),
            reasoning: Some(5),
            cached: Some(8),
            bad: false,
        })
    );
}

#[test]
fn odd_usage_spoils_nothing_else() {
    let usage = |input, output, bad| {
        Some(Usage {
            input,
            output,
            bad,
            ..Usage::default()
        })
    };
    for (json, expected) in [
        (
            r#"{"prompt_tokens":5,"completion_tokens":-3}"#,
            usage(Some(5), None, true),
        ),
        (
            r#"{"prompt_tokens":5.0,"completion_tokens":2.5}"#,
            usage(Some(5), None, true),
        ),
        (
            r#"{"prompt_tokens":1e999,"completion_tokens":3}"#,
            usage(None, Some(3), true),
        ),
        (
            r#"{"prompt_tokens":"5","completion_tokens":3}"#,
            usage(None, Some(3), true),
        ),
        (
            r#"{"prompt_tokens":null,"completion_tokens":3}"#,
            usage(None, Some(3), false),
        ),
        (
            r#"{"input_tokens":5,"output_tokens":3}"#,
            usage(Some(5), Some(3), false),
        ),
        (
            r#"{"prompt_tokens":5,"prompt_tokens_details":null,"completion_tokens_details":[1]}"#,
            usage(Some(5), None, false),
        ),
        (r"[1,2]", usage(None, None, true)),
        (r#""none""#, usage(None, None, true)),
        ("{}", None),
        ("null", None),
    ] {
        let json = format!(r#"{{"choices":[{{"delta":{{"content":"a"}}}}],"usage":{json}}}"#);
        let said = said(&json);
        assert!(said.has_token(), "{json}");
        assert_eq!(said.usage, expected, "{json}");
    }
}

#[test]
fn lists_with_one_entry_per_token_are_counted() {
    for (choice, expected) in [
        (
            r#"{"delta":{"content":"ab"},"logprobs":{"content":[{"token":"a"},{"token":"b"}]}}"#,
            Some((2, TokenSource::Logprobs)),
        ),
        (
            r#"{"text":"ab","logprobs":{"tokens":["a","b"],"token_logprobs":[-1,null],"text_offset":[0,1]}}"#,
            Some((2, TokenSource::Logprobs)),
        ),
        (
            r#"{"delta":{"content":"a"},"token_ids":[1,2,3],"logprobs":{"content":[{}]}}"#,
            Some((3, TokenSource::TokenIds)),
        ),
        (
            r#"{"delta":{"content":"a"},"token_ids":[],"logprobs":{"content":null}}"#,
            Some((0, TokenSource::TokenIds)),
        ),
        (
            r#"{"delta":{"content":"a"},"token_ids":null,"logprobs":null}"#,
            None,
        ),
    ] {
        let json = format!(r#"{{"choices":[{choice}]}}"#);
        assert_eq!(said(&json).listed, expected, "{json}");
    }
}

#[test]
fn errors_are_found_in_every_shape() {
    for (json, kind, message) in [
        (
            r#"{"error":{"message":"late","type":"TimeoutError","code":504}}"#,
            "TimeoutError",
            "late",
        ),
        (r#"{"error":{"message":"late","code":504}}"#, "504", "late"),
        (
            r#"{"error":{"message":"late","http_status_code":422}}"#,
            "422",
            "late",
        ),
        (
            r#"{"error":"overloaded","error_type":"overloaded"}"#,
            "overloaded",
            "overloaded",
        ),
        (
            r#"{"object":"error","message":"no","code":400}"#,
            "400",
            "no",
        ),
        (r#"{"detail":"Not Found"}"#, "error", "Not Found"),
        (r#"{"choices":[],"error":"busy"}"#, "error", "busy"),
    ] {
        let error = said(json).error.expect(json);
        assert_eq!((&*error.kind, &*error.message), (kind, message), "{json}");
    }
}

#[test]
fn what_is_no_object_is_no_event() {
    for json in [
        "<html>",
        "[]",
        "3",
        "\"a\"",
        "null",
        "{\"choices\":[",
        "{} {}",
    ] {
        let event = Event {
            name: b"",
            data: json.as_bytes(),
        };
        assert!(read(event, &mut Said::default()).is_err(), "{json}");
    }
}

#[test]
fn a_whole_response_is_read_like_a_chunk() {
    let json = r#"{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    check(json, &[(0, Channel::Output, "hi")]);
    assert_eq!(said(json).finish.as_deref(), Some("stop"));
}

fn json_of(api: Api, style: RequestConfig, output_tokens: Option<u32>) -> serde_json::Value {
    let prompt = Prompt {
        text: "a \"b\"".into(),
        input_tokens: Some(2),
        output_tokens,
        ..Prompt::default()
    };
    let protocol = Protocol::new(api, style).expect("no body");
    let body = protocol.body(&protocol.ask("m", &prompt, true));
    serde_json::from_slice(&body.expect("no template")).expect("JSON")
}

#[test]
fn the_body_asks_for_usage_and_for_an_exact_length() {
    assert_eq!(
        json_of(Api::Chat, RequestConfig::default(), Some(8)),
        serde_json::json!({
            "model": "m", "messages": [{"role": "user", "content": "a \"b\""}], "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 8, "min_tokens": 8, "ignore_eos": true,
        })
    );
    assert_eq!(
        json_of(Api::Completions, RequestConfig::default(), Some(8)),
        serde_json::json!({
            "model": "m", "prompt": "a \"b\"", "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 8, "min_tokens": 8, "ignore_eos": true,
        })
    );
    assert_eq!(
        json_of(Api::Responses, RequestConfig::default(), Some(8)),
        serde_json::json!({
            "model": "m", "input": "a \"b\"", "stream": true, "max_output_tokens": 8,
        })
    );
    let prompt = Prompt {
        text: "a".into(),
        input_tokens: Some(1),
        output_tokens: None,
        ..Prompt::default()
    };
    let protocol = Protocol::new(Api::Chat, RequestConfig::default()).expect("no body");
    let body = protocol.body(&protocol.ask("", &prompt, false));
    let body = body.expect("no template");
    let json: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(
        json,
        serde_json::json!({"messages": [{"role": "user", "content": "a"}], "stream": false})
    );
}

#[test]
fn the_body_is_as_the_operator_wants_it() {
    let mut extra = serde_json::Map::new();
    extra.insert("temperature".into(), 0.into());
    extra.insert("stream".into(), false.into());
    let style = RequestConfig {
        usage: false,
        length: LengthField::MaxCompletionTokens,
        exact_length: false,
        extra,
        ..RequestConfig::default()
    };
    assert_eq!(
        json_of(Api::Chat, style.clone(), Some(8)),
        serde_json::json!({
            "model": "m", "messages": [{"role": "user", "content": "a \"b\""}], "stream": false,
            "max_completion_tokens": 8, "temperature": 0,
        })
    );
    assert_eq!(
        json_of(Api::Completions, style, Some(8)),
        serde_json::json!({
            "model": "m", "prompt": "a \"b\"", "stream": false, "max_tokens": 8, "temperature": 0,
        })
    );
}
