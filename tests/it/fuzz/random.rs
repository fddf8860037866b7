//! The targets over random input: bytes, and fragments of the formats in any order.
//!
//! This is no search: nothing leads from one input to the next. It shows on every run of the
//! tests that the targets themselves work.

use proptest::prelude::*;

use super::invariants;

/// Parts of event streams, of their framing and of the JSON in them.
const STREAM: &[&str] = &[
    "a00",
    "b10",
    "c20",
    "d01",
    "g40",
    "g0",
    "data: ",
    "data:",
    "event: error",
    "event: ",
    ": ping",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\u{feff}",
    "[DONE]",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"",
    "\\u00e9",
    "null",
    "-1",
    "12",
    "1e99",
    " ",
    "é",
    "你",
    "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"a\"}}]}",
    "{\"choices\":[{\"delta\":{\"reasoning\":\"a\",\"reasoning_content\":\"a\"}}]}",
    "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}",
    "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}",
    "{\"error\":{\"message\":\"m\",\"type\":\"t\"}}",
    "{\"error\":\"m\"}",
    "{\"response\":\"a\",\"done\":false}",
    "{\"message\":{\"content\":\"a\"},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":2}",
    "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"STOP\"}]}",
    "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}",
    "<html>",
];

/// Parts of metrics pages.
const PAGE: &[&str] = &[
    "vllm:num_requests_running",
    "llamacpp:requests_deferred",
    "vllm:kv_cache_usage_perc",
    "a",
    "{",
    "}",
    "b=",
    "\"",
    "\\",
    "\\n",
    ",",
    " ",
    "\t",
    "1",
    "-1",
    "NaN",
    "+Inf",
    "1e308",
    "\n",
    "\r\n",
    "# HELP ",
    "é",
    " # {t=\"x\"} 1",
];

/// Parts of traces and of sets of prompts.
const TRACES: &[&str] = &[
    "a",
    "b",
    "h",
    "\n",
    "\r\n",
    ",",
    "\"",
    "[",
    "]",
    "{",
    "}",
    "0",
    "-1",
    "1e3",
    "NaN",
    "\\ud83d",
    "{\"timestamp\":1,\"input_length\":33,\"output_length\":2,\"hash_ids\":[1,2,3]}",
    "{\"chat_id\":1,\"parent_chat_id\":1,\"timestamp\":1.5,\"input_length\":5,\"hash_ids\":[7]}",
    "{\"id\":\"a\",\"block_size\":16,\"requests\":[{\"t\":1,\"in\":16,\"out\":1,\"hash_ids\":[1]}]}",
    "{\"session_id\":\"a\",\"input_tokens_total\":40,\"prefix_tokens\":20}",
    "Timestamp,Request tokens,Response tokens\n",
    "TIMESTAMP,ContextTokens,GeneratedTokens\n",
    "5,472,18\n",
    "2023-11-16 18:15:46.6805900,374,44\n",
    "{\"id\":\"a\",\"conversations\":[{\"from\":\"human\",\"value\":\"q\"},{\"from\":\"gpt\",\"value\":\"a\"}]}",
    "{\"data\":[",
    "{\"session_id\":\"a\",\"payloads\":[{}]}",
    "{\"text\":\"a\"}",
    "{\"turns\":[{\"text\":\"a\"}]}",
];

fn fragments(of: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(of), 0..40)
        .prop_map(|fragments| fragments.concat().into_bytes())
}

proptest! {
    #[test]
    fn streams_of_fragments(data in fragments(STREAM)) {
        invariants::sse(&data);
        invariants::lines(&data);
        invariants::array(&data);
        invariants::protocols(&data);
    }

    #[test]
    fn pages_of_fragments(data in fragments(PAGE)) {
        invariants::page(&data);
    }

    #[test]
    fn traces_of_fragments(format in b'a'..=b'p', data in fragments(TRACES)) {
        invariants::traces(&[&[format], &data[..]].concat());
    }

    #[test]
    fn bytes(data in prop::collection::vec(any::<u8>(), 0..300)) {
        for (_, holds) in invariants::TARGETS {
            holds(&data);
        }
    }
}
