//! Prompts that a file gives. What is in the file is looked at when it is opened.

use std::path::PathBuf;

use super::super::diagnostic::Problem;
use super::super::given::Refusal;
use super::super::keys;
use super::super::reader::{Node, Reader, Section};
use super::super::{Arrivals, Counting, PhaseConfig, PromptFile, Replies, Sampling};
use super::workload::MOST_TOKENS;
use super::{HOUR, small};

/// Tokens of a block.
const MOST_BLOCK: u64 = 1_000_000;
/// Factor of pauses.
const MOST_RATIO: f64 = 1_000.0;

/// The file that `workload.file` names.
pub(super) fn prompt_file<'a>(
    reader: &mut Reader<'a>,
    workload: &Section<'a>,
) -> Option<PromptFile> {
    for key in ["synthetic", "cache", "cache_salt"] {
        if let Some(node) = workload.get(key) {
            let hint = "a workload has either `file` or `synthetic`, and the other keys go with the latter";
            reader.refuse(&node, &Refusal::new(Problem::Conflict).hint(hint));
        }
    }
    let section = reader.subsection(workload, "file", &keys::PROMPT_FILE)?;
    let path = reader.required(&section, "path", |given| match given.text()? {
        "" => Err(Refusal::new(Problem::NotUnderstood)),
        path => Ok(PathBuf::from(path)),
    });
    let format = reader.optional(&section, "format", |given| given.text());
    let mut tokens = |key, most| {
        let number = reader.optional(&section, key, |given| given.whole(1..=most));
        number.map(small)
    };
    let block_tokens = tokens("block_size", MOST_BLOCK);
    let output_tokens = tokens("output_tokens", MOST_TOKENS);
    let sampling = reader.optional(&section, "sampling", |given| {
        let words = [
            ("sequential", Sampling::Sequential),
            ("random", Sampling::Random),
            ("shuffle", Sampling::Shuffle),
        ];
        given.word(&words, &[])
    });
    let count = reader.optional(&section, "count", |given| {
        let words = [
            ("auto", Counting::Auto),
            ("words", Counting::Words),
            ("tokenizer", Counting::Tokenizer),
        ];
        given.word(&words, &[])
    });
    let skip = reader.optional(&section, "skip_bad_rows", |given| given.flag());
    let replies = reader.optional(&section, "replies", |given| {
        let words = [("live", Replies::Live), ("recorded", Replies::Recorded)];
        given.word(&words, &[])
    });
    let ratio = reader.optional(&section, "delay_ratio", |given| {
        given.number(0.0..=MOST_RATIO)
    });
    let cap = reader.optional(&section, "delay_cap", |given| {
        given.duration(std::time::Duration::ZERO..=HOUR * 24)
    });
    let mut file = PromptFile {
        format: format.map(str::to_owned),
        block_tokens,
        sampling,
        skip_bad_rows: skip.unwrap_or(false),
        output_tokens,
        count: count.unwrap_or_default(),
        replies: replies.unwrap_or_default(),
        ..PromptFile::at(path?)
    };
    file.pauses.ratio = ratio.unwrap_or(file.pauses.ratio);
    file.pauses.cap = cap;
    Some(file)
}

/// Notes arrivals of `phases` that do not go together with where prompts come from: `file`, if
/// that is a file. `node` is where arrivals are given.
pub(super) fn check_arrivals<'a>(
    reader: &mut Reader<'a>,
    node: &Node<'a>,
    (phases, file): (&mut [PhaseConfig], Option<&PromptFile>),
) {
    for phase in phases {
        if let (Arrivals::Users { turns, .. }, None) = (&mut phase.arrivals, file) {
            turns.get_or_insert(1);
        }
        let wrong = match (&phase.arrivals, file) {
            (Arrivals::Trace { .. }, None) => Refusal::new(Problem::Conflict)
                .wanted("`workload.file` beside `process: trace`: its rows have the times"),
            (Arrivals::Trace { .. }, Some(file)) if file.sampling.is_some() => {
                Refusal::new(Problem::Conflict)
                    .wanted("no `sampling` beside `process: trace`: rows are sent as they stand")
            }
            (Arrivals::Users { turns: Some(_), .. }, Some(_)) => Refusal::new(Problem::Conflict)
                .wanted("no `turns` beside `workload.file`")
                .hint("users go through the conversations of the file, one after the other"),
            _ => continue,
        };
        reader.refuse(node, &wrong);
        return;
    }
}
