//! Prompts and answers of a length, and what a prefix cache serves of them: the real llama.cpp
//! counts as we do, and its one slot keeps what the prompt before left in it.

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokencanary::config::{TextStyle, WorkloadConfig};
use tokencanary::load::workload::{Measure, Prompt, Sources, Tokenizer, Workload, Writer};
use tokencanary::measurement::{Api, CacheMode, Outcome, RequestRecord};

use super::asking::{Question, ask_prompt};
use super::components::{LlamaServer, component};
use crate::program::scratch;

const MODEL: &str = "tiny";
/// Tokens of a block.
const BLOCK: u32 = 16;

/// The tokenizer of the model.
fn tokenizer() -> Arc<Tokenizer> {
    let path = component("TOKENCANARY_TINY_TOKENIZER");
    let bytes = std::fs::read(&path).expect("it was written beside the model");
    Arc::new(Tokenizer::json(&bytes).expect("it is one"))
}

async fn answered(llama: &LlamaServer, api: Api, prompt: Prompt) -> RequestRecord {
    let record = ask_prompt(&llama.url, &Question::new(api, true, MODEL), prompt).await;
    assert_eq!(record.outcome, Outcome::Ok, "{record:?}");
    record
}

/// A prompt of `text` with an answer of one token.
fn of(text: String) -> Prompt {
    Prompt {
        text,
        output_tokens: Some(1),
        ..Prompt::default()
    }
}

fn workload(tokens: u32, output: u32, tokenizer: &Arc<Tokenizer>) -> Workload {
    let config = WorkloadConfig::synthetic(tokens, Some(output), CacheMode::Cold);
    let sources = Sources {
        seeded: StdRng::seed_from_u64(1),
        fresh: StdRng::seed_from_u64(2),
    };
    Workload::new(&config, Measure::Exact(Arc::clone(tokenizer)), sources)
}

#[tokio::test]
async fn the_server_counts_as_many_tokens_as_were_asked_for() {
    let folder = scratch("llama_lengths");
    let llama = LlamaServer::start_one_slot(&folder).await;
    let tokenizer = tokenizer();
    for api in [Api::Completions, Api::Chat] {
        // What it adds itself: the beginning of the sequence, and in chat the template.
        let one = answered(&llama, api, of("the".to_owned())).await;
        let around = one.tokens.input.expect("counted") - tokenizer.count("the").expect("text");
        for tokens in [16, 128, 1_024, 8_192] {
            let prompt = workload(tokens, 1, &tokenizer).prompt(None);
            assert_eq!(prompt.input_tokens, Some(tokens));
            assert_eq!(tokenizer.count(&prompt.text).ok(), Some(tokens));
            let record = answered(&llama, api, prompt).await;
            let counted = record.tokens.input.expect("counted") - around;
            assert_eq!(counted, tokens, "{api:?}");
        }
    }
}

#[tokio::test]
async fn answers_are_as_long_as_was_asked_for() {
    let folder = scratch("llama_outputs");
    let llama = LlamaServer::start_one_slot(&folder).await;
    let mut workload = workload(12, 24, &tokenizer());
    let mut exact = 0;
    for _ in 0..100 {
        let record = answered(&llama, Api::Completions, workload.prompt(None)).await;
        exact += u32::from(record.tokens.output == Some(24));
    }
    assert!(exact >= 99, "{exact} of 100");
}

#[tokio::test]
async fn one_slot_serves_what_the_prompt_before_left_in_it() {
    let folder = scratch("llama_one_slot");
    let llama = LlamaServer::start_one_slot(&folder).await;
    let mut writer = Writer::new(TextStyle::Words, Measure::Exact(tokenizer()));
    // Blocks of each prompt, behind the beginning of the sequence and one word.
    let trace: [&[u64]; 8] = [
        &[1, 2, 3, 4],
        &[1, 2, 5],
        &[1, 2, 3, 4],
        &[9],
        &[9, 1, 2],
        &[9, 1, 2, 6, 7],
        &[1, 2],
        &[1, 2],
    ];
    let mut before: &[u64] = &[];
    for (number, blocks) in trace.into_iter().enumerate() {
        let texts = blocks.iter().map(|id| writer.block((7, *id), BLOCK).text);
        let text: String = std::iter::once("the".to_owned()).chain(texts).collect();
        let record = answered(&llama, Api::Completions, of(text)).await;
        let all = 2 + BLOCK * u32::try_from(blocks.len()).expect("few");
        assert_eq!(record.tokens.input, Some(all), "prompt {number}");
        let same = blocks
            .iter()
            .zip(before)
            .take_while(|(one, other)| one == other);
        let same = u32::try_from(same.count()).expect("few");
        // The last token is computed in any case, to get the next one.
        let kept = (2 + BLOCK * same).min(all - 1);
        let expected = if number == 0 { 0 } else { kept };
        assert_eq!(record.tokens.cached, Some(expected), "prompt {number}");
        before = blocks;
    }
}
