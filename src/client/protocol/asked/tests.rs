//! The bodies of prompts that have more than a text, protocol by protocol.

use std::sync::Arc;

use super::super::Protocol;
use super::*;
use crate::config::RequestConfig;
use crate::load::workload::{Message as Said, Role};
use crate::measurement::Api;

fn body(api: Api, prompt: &Prompt) -> String {
    let protocol = Protocol::new(api, RequestConfig::default()).expect("no body of the operator's");
    let ask = protocol.ask("m", prompt, true);
    String::from_utf8(protocol.body(&ask).expect("no template")).expect("JSON")
}

fn raw(json: &str) -> Arc<RawValue> {
    RawValue::from_string(json.to_owned()).expect("JSON").into()
}

/// Instructions, a turn before it, and a picture.
fn rich() -> Prompt {
    let said = |role, text: &str| Said {
        role,
        text: text.into(),
    };
    Prompt {
        text: "now".to_owned(),
        system: Some("brief".into()),
        history: vec![said(Role::User, "hi"), said(Role::Assistant, "hello")],
        media: vec![Media::Image("data:image/png;base64,AA==".into())],
        ..Prompt::default()
    }
}

#[test]
fn chat_sends_everything() {
    let prompt = Prompt {
        media: vec![
            Media::Image("https://x/i.png".into()),
            Media::Audio {
                format: "wav",
                data: "BB==".into(),
            },
            Media::Video("https://x/v.mp4".into()),
        ],
        tools: Some(raw(r#"[{"type": "function"}]"#)),
        cache_salt: Some("s".into()),
        extra: Some(Arc::new(
            [("top_k".to_owned(), 5.into())].into_iter().collect(),
        )),
        ..rich()
    };
    let found: serde_json::Value = serde_json::from_str(&body(Api::Chat, &prompt)).expect("JSON");
    assert_eq!(
        found,
        serde_json::json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "brief"},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "hello"},
                {"role": "user", "content": [
                    {"type": "text", "text": "now"},
                    {"type": "image_url", "image_url": {"url": "https://x/i.png"}},
                    {"type": "input_audio", "input_audio": {"data": "BB==", "format": "wav"}},
                    {"type": "video_url", "video_url": {"url": "https://x/v.mp4"}},
                ]},
            ],
            "tools": [{"type": "function"}],
            "cache_salt": "s",
            "top_k": 5,
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn each_protocol_has_its_own_form() {
    for (api, expected) in [
        (
            Api::Messages,
            r#"{"model":"m","max_tokens":1024,"system":"brief","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"user","content":[{"type":"text","text":"now"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}],"stream":true}"#,
        ),
        (
            Api::Responses,
            r#"{"model":"m","instructions":"brief","input":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"user","content":[{"type":"input_text","text":"now"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}],"stream":true}"#,
        ),
        (
            Api::Ollama,
            r#"{"model":"m","messages":[{"role":"system","content":"brief"},{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"user","content":"now","images":["AA=="]}],"stream":true}"#,
        ),
        (
            Api::Gemini,
            r#"{"systemInstruction":{"parts":[{"text":"brief"}]},"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"hello"}]},{"role":"user","parts":[{"text":"now"},{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}]}"#,
        ),
        (
            Api::Cohere,
            r#"{"model":"m","messages":[{"role":"system","content":"brief"},{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"user","content":[{"type":"text","text":"now"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],"stream":true}"#,
        ),
    ] {
        assert_eq!(body(api, &rich()), expected, "{api:?}");
    }
}

#[test]
fn protocols_without_messages_send_one_text() {
    let whole = r"brief\n\nhi\n\nhello\n\nnow";
    for (api, field) in [
        (Api::Completions, "prompt"),
        (Api::Tgi, "inputs"),
        (Api::Llamacpp, "prompt"),
        (Api::Triton, "text_input"),
        (Api::OllamaGenerate, "prompt"),
    ] {
        let found = body(api, &rich());
        let wanted = format!(r#""{field}":"{whole}""#);
        assert!(found.contains(&wanted), "{api:?}: {found}");
    }
    for api in [Api::Kserve, Api::Embeddings] {
        let found = body(api, &rich());
        assert!(
            found.contains(&format!(r#"["{whole}"]"#)),
            "{api:?}: {found}"
        );
    }
}

#[test]
fn messages_of_a_data_set_are_sent_as_they_are() {
    let json = r#"[{"role": "user",  "content": [{"type": "text", "text": "a"}]}, {"role": "assistant", "content": "b"}]"#;
    let prompt = Prompt {
        verbatim: Some(Verbatim::Messages(raw(json))),
        ..Prompt::default()
    };
    for (api, field) in [
        (Api::Chat, "messages"),
        (Api::Messages, "messages"),
        (Api::Ollama, "messages"),
        (Api::Cohere, "messages"),
        (Api::Responses, "input"),
    ] {
        let found = body(api, &prompt);
        assert!(
            found.contains(&format!(r#""{field}":{json}"#)),
            "{api:?}: {found}"
        );
    }
    assert!(body(Api::Completions, &prompt).contains(r#""prompt":"a\n\nb""#));
    assert!(body(Api::Gemini, &prompt).contains(
        r#"[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]}]"#
    ));
}

#[test]
fn a_whole_body_is_sent_byte_by_byte() {
    let sent = |api, json: &str| {
        let prompt = Prompt {
            verbatim: Some(Verbatim::Body(raw(json))),
            output_tokens: Some(9),
            ..Prompt::default()
        };
        body(api, &prompt)
    };
    let whole = r#"{"model": "other",  "x": 1.50}"#;
    assert_eq!(sent(Api::Chat, whole), whole);
    assert_eq!(sent(Api::Chat, r#"{ "x": 1}"#), r#"{"model":"m", "x": 1}"#);
    assert_eq!(sent(Api::Chat, "{}"), r#"{"model":"m"}"#);
    assert_eq!(
        sent(Api::Gemini, r#"{"contents":[]}"#),
        r#"{"contents":[]}"#,
        "the model is in the path"
    );
}
