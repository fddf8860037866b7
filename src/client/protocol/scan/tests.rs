//! The short way and the full reading say the same of every event.

use proptest::prelude::*;

use super::*;
use crate::client::protocol::Protocol;
use crate::config::RequestConfig;
use crate::measurement::Api;

/// One token of each of these servers, as they send it.
const CHUNKS: [(Api, &str); 10] = [
    // vLLM
    (
        Api::Chat,
        r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1795968505,"model":"m","choices":[{"index":0,"delta":{"content":" hand"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
    ),
    // SGLang
    (
        Api::Chat,
        r#"{"id":"1","object":"chat.completion.chunk","created":1795968505,"model":"m","choices":[{"index":0,"delta":{"role":null,"content":" hand","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}"#,
    ),
    // llama.cpp
    (
        Api::Chat,
        r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":" mat"}}],"created":1795968505,"id":"chatcmpl-uz1F","model":"tiny","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}"#,
    ),
    // OpenAI
    (
        Api::Chat,
        r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1795968505,"model":"m","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"é 你"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"xY"}"#,
    ),
    // Dynamo
    (
        Api::Chat,
        r#"{"id":"chatcmpl-d2c3","choices":[{"index":0,"delta":{"content":"raise","role":"assistant"},"finish_reason":null,"logprobs":null}],"created":1795968639,"model":"mocker","object":"chat.completion.chunk"}"#,
    ),
    // text-generation-inference
    (
        Api::Chat,
        r#"{"object":"chat.completion.chunk","id":"","created":1795968505,"model":"m","system_fingerprint":"3.0","choices":[{"index":0,"delta":{"role":"assistant","content":" a"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
    ),
    (
        Api::Chat,
        r#"{"id":"1","choices":[{"index":1,"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}"#,
    ),
    (
        Api::Completions,
        r#"{"id":"cmpl-1","choices":[{"text":" res","index":0}],"created":1795968639,"model":"mocker","system_fingerprint":null,"object":"text_completion","usage":null}"#,
    ),
    (
        Api::Completions,
        r#"{"choices":[{"text":"D","index":0,"logprobs":null,"finish_reason":null}],"created":1795968505,"model":"tiny","object":"text_completion","id":"x"}"#,
    ),
    (
        Api::Responses,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","delta":"w"}"#,
    ),
];

fn event(data: &[u8]) -> Event<'_> {
    Event { name: b"", data }
}

fn protocol(api: Api) -> Protocol {
    Protocol::new(api, RequestConfig::default()).expect("no body")
}

/// What the full reading says; nothing if it cannot read it.
fn full<'a>(protocol: &Protocol, data: &'a [u8]) -> Option<Said<'a>> {
    let mut said = Said::default();
    protocol.read(event(data), &mut said).ok().map(|()| said)
}

fn learned(protocol: &Protocol, data: &[u8]) -> Shape {
    let mut shape = Shape::default();
    shape.learn(event(data), &full(protocol, data).expect("a good chunk"));
    shape
}

#[test]
fn the_usual_chunks_of_each_server_are_read_the_short_way() {
    for (api, chunk) in CHUNKS {
        let protocol = protocol(api);
        let mut shape = learned(&protocol, chunk.as_bytes());
        let said = full(&protocol, chunk.as_bytes()).expect("a good chunk");
        let text = said.pieces().next().expect("a token").text.clone();
        let quoted = format!("\"{text}\"");
        for other in ["x", "a longer text, with 你 and \u{2028}", "{}[]:,"] {
            let next = chunk.replacen(&quoted, &format!("\"{other}\""), 1);
            let mut short = Said::default();
            assert!(shape.read(event(next.as_bytes()), &mut short), "{next}");
            assert_eq!(Some(short), full(&protocol, next.as_bytes()), "{next}");
        }
    }
}

#[test]
fn what_needs_the_full_reading_is_left_to_it() {
    let (api, chunk) = CHUNKS[2];
    let protocol = protocol(api);
    let mut shape = learned(&protocol, chunk.as_bytes());
    for (from, to) in [
        ("\" mat\"", "\"\""),
        ("\" mat\"", "\"a\\nb\""),
        ("\" mat\"", "\"a\tb\""),
        ("\" mat\"", "\"a\"b\""),
        ("\" mat\"", "null"),
        ("\" mat\"", "\"a\",\"refusal\":\"b\""),
        ("null", "\"stop\""),
        ("\"index\":0", "\"index\":1"),
        ("505", "506"),
        ("chunk\"}", "chunk\",\"usage\":{\"completion_tokens\":3}}"),
        ("chunk\"}", "chunk\"} "),
    ] {
        let next = chunk.replacen(from, to, 1);
        assert!(
            !shape.read(event(next.as_bytes()), &mut Said::default()),
            "{next}"
        );
    }
    let named = Event {
        name: b"error",
        data: chunk.as_bytes(),
    };
    assert!(!shape.read(named, &mut Said::default()));
}

#[test]
fn after_a_few_vain_attempts_nothing_is_kept() {
    let protocol = protocol(Api::Chat);
    let chunk = |number: u32| CHUNKS[2].1.replace("505", &number.to_string());
    let mut shape = Shape::default();
    for number in 0..20 {
        let next = chunk(number);
        assert!(!shape.read(event(next.as_bytes()), &mut Said::default()));
        shape.learn(
            event(next.as_bytes()),
            &full(&protocol, next.as_bytes()).expect("good"),
        );
    }
    let last = chunk(19);
    assert!(!shape.read(event(last.as_bytes()), &mut Said::default()));
    let kept = chunk(u32::from(MAX_VAIN) - 1);
    assert!(shape.read(event(kept.as_bytes()), &mut Said::default()));
}

/// A change of some bytes of a chunk.
#[derive(Debug, Clone)]
struct Change {
    at: prop::sample::Index,
    remove: usize,
    insert: Vec<u8>,
}

fn change() -> impl Strategy<Value = Change> {
    let piece = prop_oneof![
        Just(b"\"".to_vec()),
        Just(b"\\".to_vec()),
        Just(b"\\n".to_vec()),
        Just(b"\",\"refusal\":\"x".to_vec()),
        Just(b"null".to_vec()),
        Just(b"{".to_vec()),
        Just(b"}".to_vec()),
        Just("é".as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
        "[a-z ]{0,6}".prop_map(String::into_bytes),
    ];
    (any::<prop::sample::Index>(), 0_usize..4, piece).prop_map(|(at, remove, insert)| Change {
        at,
        remove,
        insert,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_short_way_never_disagrees(
        which in 0..CHUNKS.len(),
        in_text in any::<bool>(),
        changes in prop::collection::vec(change(), 0..3),
    ) {
        let (api, chunk) = CHUNKS[which];
        let protocol = protocol(api);
        let mut shape = learned(&protocol, chunk.as_bytes());
        let mut next = chunk.as_bytes().to_vec();
        for change in changes {
            // Half of them hit the text and what is next to it, where it matters most.
            let at = if in_text {
                (shape.text_at + change.at.index(8)).saturating_sub(2)
            } else {
                change.at.index(next.len())
            };
            let at = at.min(next.len());
            let end = (at + change.remove).min(next.len());
            next.splice(at..end, change.insert);
        }
        let mut short = Said::default();
        if shape.read(event(&next), &mut short) {
            prop_assert_eq!(Some(short), full(&protocol, &next));
        }
    }
}
