//! What holds for every input, whatever it is: one function per target, which panics where it
//! does not.
//!
//! The fuzzer (`fuzz/`) and the tests beside this module call the same functions. They use
//! nothing but the library's public face, the standard library and `serde_json`, so that both can
//! compile them.

mod body;
mod models;
mod page;
mod relaid;
mod traces;
pub(crate) mod view;

use tokencanary::measurement::Api;

pub(crate) use self::body::Case;

/// What one target does with one input.
type Holds = fn(&[u8]);

/// Every target by its name.
pub(crate) const TARGETS: [(&str, Holds); 8] = [
    ("sse", sse),
    ("lines", lines),
    ("array", array),
    ("protocols", protocols),
    ("encodings", encodings),
    ("page", page),
    ("models", models),
    ("traces", traces),
];

/// Event streams of chat completions.
pub(crate) fn sse(data: &[u8]) {
    body(data, &[Api::Chat]);
}

/// Lines of JSON, as Ollama streams them.
pub(crate) fn lines(data: &[u8]) {
    body(data, &[Api::Ollama, Api::OllamaGenerate]);
}

/// A JSON array that grows, as Gemini streams it.
pub(crate) fn array(data: &[u8]) {
    body(data, &[Api::Gemini]);
}

/// Bodies of every protocol: the first letter says which, in the order of [`Api::ALL`].
pub(crate) fn protocols(data: &[u8]) {
    body(data, &Api::ALL);
}

/// Chat under a content encoding: a letter for it, then a case of [`sse`].
pub(crate) fn encodings(data: &[u8]) {
    const NAMES: [&str; 6] = ["gzip", "deflate", "br", "zstd", "gzip,br", "identity,GZIP"];
    let Some((letter, case)) = data.split_first() else {
        return;
    };
    if let Some(mut case) = Case::parse(case, &[Api::Chat]) {
        let name = NAMES[usize::from(letter.wrapping_sub(b'a')) % NAMES.len()];
        case.how.encoding = Some(name);
        body::cuts_do_not_matter(&case);
    }
}

/// Metrics pages.
pub(crate) fn page(data: &[u8]) {
    page::holds(data);
}

/// Lists of served models.
pub(crate) fn models(data: &[u8]) {
    models::holds(data);
}

/// Traces and sets of prompts: the first letter says the format.
pub(crate) fn traces(data: &[u8]) {
    traces::holds(data);
}

fn body(data: &[u8], apis: &[Api]) {
    if let Some(case) = Case::parse(data, apis) {
        body::holds(&case);
    }
}
