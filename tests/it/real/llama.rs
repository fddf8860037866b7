//! A real llama.cpp server, by each of its protocols: what the record says of an answer is what
//! the answer itself says.

use tokencanary::measurement::{Api, Note, TokenSource};

use super::asking::{
    CHAT, COMPLETIONS, OUTPUT, Places, Question, ask_and_keep, assert_error, assert_same,
};
use super::components::LlamaServer;
use crate::program::scratch;

const MODEL: &str = "tiny";
/// More than the 1024 tokens of a slot.
const TOO_MANY: usize = 3000;

const RESPONSES_STREAM: Places = Places {
    input: "/response/usage/input_tokens",
    output: "/response/usage/output_tokens",
    finish: "/response/status",
    text: "/delta",
};
const RESPONSES_WHOLE: Places = Places {
    input: "/usage/input_tokens",
    output: "/usage/output_tokens",
    finish: "/status",
    text: "/none",
};
const NATIVE: Places = Places {
    input: "/tokens_evaluated",
    output: "/tokens_predicted",
    finish: "/stop_type",
    text: "/content",
};

const fn places(api: Api, streaming: bool) -> &'static Places {
    match (api, streaming) {
        (Api::Chat, _) => &CHAT,
        (Api::Completions, _) => &COMPLETIONS,
        (Api::Responses, true) => &RESPONSES_STREAM,
        (Api::Responses, false) => &RESPONSES_WHOLE,
        _ => &NATIVE,
    }
}

async fn every_answer_is_read_as_it_is(api: Api) {
    let folder = scratch(&format!("llama_{}", api.name()));
    let llama = LlamaServer::start(&folder).await;
    for streaming in [true, false] {
        let question = Question::new(api, streaming, MODEL);
        let asked = ask_and_keep(&llama.url, &question).await;
        assert_same(&question, &asked, places(api, streaming));
        assert_eq!(asked.0.tokens.output, Some(OUTPUT), "{:?}", asked.0);

        // Whatever it is called, there is one model, and it answers.
        let unknown = Question::new(api, streaming, "nobody");
        let asked = ask_and_keep(&llama.url, &unknown).await;
        assert_same(&unknown, &asked, places(api, streaming));

        let long = Question {
            words: TOO_MANY,
            ..question
        };
        let asked = ask_and_keep(&llama.url, &long).await;
        assert_error(&asked, 400, "/error/message");
        let kind = asked.0.error.map(|error| error.kind);
        assert_eq!(kind.as_deref(), Some("exceed_context_size_error"));
    }
}

#[tokio::test]
async fn chat_is_read_as_it_is() {
    every_answer_is_read_as_it_is(Api::Chat).await;
}

#[tokio::test]
async fn completions_are_read_as_they_are() {
    every_answer_is_read_as_it_is(Api::Completions).await;
}

#[tokio::test]
async fn responses_are_read_as_they_are() {
    every_answer_is_read_as_it_is(Api::Responses).await;
}

#[tokio::test]
async fn its_own_protocol_is_read_as_it_is() {
    every_answer_is_read_as_it_is(Api::Llamacpp).await;
}

#[tokio::test]
async fn a_stream_without_usage_still_has_a_count_and_says_from_where() {
    let folder = scratch("llama_no_usage");
    let llama = LlamaServer::start(&folder).await;
    for api in [Api::Chat, Api::Completions] {
        let question = Question {
            usage: false,
            ..Question::new(api, true, MODEL)
        };
        let (record, answer) = ask_and_keep(&llama.url, &question).await;
        assert_eq!(record.outcome.name(), "ok", "{record:?}");
        // Completions tell their usage even so, and the record says that nobody asked.
        let unasked = answer.last("/usage").is_some();
        assert_eq!(unasked, api == Api::Completions, "{answer:?}");
        assert_eq!(record.notes.has(Note::UsageUnasked), unasked, "{record:?}");
        assert_eq!(record.tokens.input.is_some(), unasked, "{record:?}");
        assert!(record.tokens.output.is_some(), "{record:?}");
        let by_usage = record.tokens.source == Some(TokenSource::Usage);
        assert_eq!(by_usage, unasked, "{record:?}");
        assert_eq!(record.chunks.len(), answer.texts(places(api, true).text));
    }
}
