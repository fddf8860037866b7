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
    fn bytes(data in prop::collection::vec(any::<u8>(), 0..300)) {
        for (_, holds) in invariants::TARGETS {
            holds(&data);
        }
    }
}
