//! The generate extension of Triton: `generate` and `generate_stream`.
//!
//! Names that are no input tensors of the model reach it as parameters, so one body serves both
//! the vLLM backend and TensorRT-LLM. Nothing marks the end of a stream but the end of the body.
//!
//! What the text is cannot be told from the response: a TensorRT-LLM model that is not
//! configured for deltas sends all of the text so far in each event, and the vLLM backend puts
//! the prompt before a whole answer unless `exclude_input_in_output` says otherwise. Times are
//! right in either case, and so are the counts a model gives; a local tokenizer would count too
//! much.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::asked::flat;
use super::count::{Count, Total};
use super::segment::segment;
use super::several::Several;
use super::text::Text;
use super::{Ask, Channel, Said, Usage, fault};
use crate::client::framing::Event;
use crate::measurement::TokenSource;

#[derive(Serialize)]
struct Body<'a> {
    text_input: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_eos: Option<bool>,
}

pub(super) fn path(ask: &Ask<'_>) -> String {
    let verb = if ask.streaming {
        "generate_stream"
    } else {
        "generate"
    };
    format!("/v2/models/{}/{verb}", segment(ask.model))
}

pub(super) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let length = ask.prompt.output_tokens;
    let exact = length.filter(|_| ask.style.exact_length);
    let body = Body {
        text_input: &flat(ask.prompt),
        stream: ask.streaming,
        max_tokens: length,
        min_tokens: exact,
        ignore_eos: exact.map(|_| true),
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

#[derive(Deserialize)]
struct Incoming<'a> {
    /// One text, or one for each element of the output tensor.
    #[serde(borrow, default)]
    text_output: Several<Text<'a>>,
    #[serde(borrow, default)]
    finish_reason: Several<Text<'a>>,
    #[serde(default)]
    num_input_tokens: Total,
    /// Those of this event; or, with some models, all so far.
    #[serde(default)]
    num_output_tokens: Total,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
}

pub(super) fn read<'a>(event: Event<'a>, said: &mut Said<'a>) -> Result<(), serde_json::Error> {
    let incoming: Incoming<'a> = serde_json::from_slice(event.data)?;
    let tells = incoming.error.is_some() || incoming.detail.is_some();
    fault::note(event, tells, said)?;
    for (choice, text) in (0..).zip(incoming.text_output) {
        said.say(choice, Channel::Output, text.0);
    }
    for reason in incoming.finish_reason {
        // The backend spells the absence of a reason out.
        if !matches!(&*reason.0, "null" | "None") {
            said.finish(&reason.0);
        }
    }
    if let Some(count) = incoming.num_output_tokens.0.positive().value {
        said.listed = Some((count, TokenSource::ChunkUsage));
    }
    let none = Count::default();
    let usage = Usage::of(incoming.num_input_tokens.0, none, none, none);
    said.usage = (usage != Usage::default()).then_some(usage);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::replay::{asked, asked_in, replay};
    use crate::config::RequestConfig;
    use crate::measurement::{Api, Outcome, TokenSource};

    const TOKEN: &str =
        "data: {\"model_name\":\"m\",\"model_version\":\"1\",\"text_output\":\" a\"}\n\n";

    #[test]
    fn the_model_is_in_the_path() {
        assert_eq!(
            asked(Api::Triton, true, Some(8)),
            (
                "/v2/models/m/generate_stream".to_owned(),
                r#"{"text_input":"hi","stream":true,"max_tokens":8,"min_tokens":8,"ignore_eos":true}"#.to_owned()
            )
        );
        assert_eq!(
            asked(Api::Triton, false, None),
            (
                "/v2/models/m/generate".to_owned(),
                r#"{"text_input":"hi","stream":false}"#.to_owned()
            )
        );
        let loose = RequestConfig {
            exact_length: false,
            ..RequestConfig::default()
        };
        let (_, body) = asked_in(loose, Api::Triton, true, Some(8));
        assert_eq!(body, r#"{"text_input":"hi","stream":true,"max_tokens":8}"#);
    }

    #[test]
    fn the_end_of_the_body_is_the_end() {
        let empty = TOKEN.replace(" a", "");
        let record = replay(Api::Triton, true, &format!("{TOKEN}{TOKEN}{empty}"));
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!((record.chunks.len(), record.finish_reason), (2, None));
        let record = replay(Api::Triton, true, &empty);
        assert_eq!(record.outcome, Outcome::Empty);
    }

    #[test]
    fn tensors_of_one_element_may_be_arrays() {
        let token = TOKEN.replace(
            "\" a\"",
            "[\" a\"],\"finish_reason\":[\"null\"],\"num_input_tokens\":9",
        );
        let last = TOKEN.replace("\" a\"", "[\"\"],\"finish_reason\":\"length\"");
        let record = replay(Api::Triton, true, &format!("{token}{last}"));
        assert_eq!((record.outcome, record.chunks.len()), (Outcome::Ok, 1));
        assert_eq!(record.finish_reason.as_deref(), Some("length"));
        assert_eq!(record.tokens.input, Some(9));
    }

    #[test]
    fn counts_of_each_event_are_added_up_and_counts_of_all_so_far_are_not() {
        let counted = |counts: &[&str]| {
            let event = |count: &&str| {
                TOKEN.replace("\" a\"", &format!("\" a\",\"num_output_tokens\":{count}"))
            };
            let body: String = counts.iter().map(event).collect();
            replay(Api::Triton, true, &body).tokens
        };
        for (counts, expected) in [
            (&["1", "1", "1", "2"][..], 5),
            (&["[1]", "[1]", "[3]"], 5),
            (&["[1,2]", "[1,1]"], 5),
            // Each count larger than the one before: they are of the whole.
            (&["1", "2", "3", "5"], 5),
            (&["2", "4", "7"], 7),
            // Two of them may be either.
            (&["1", "2"], 3),
        ] {
            let tokens = counted(counts);
            assert_eq!(tokens.output, Some(expected), "{counts:?}");
            assert_eq!(tokens.source, Some(TokenSource::ChunkUsage), "{counts:?}");
        }
        assert_eq!(counted(&["2", "4", "7"]).in_first_chunk, Some(2));
    }

    #[test]
    fn errors_inside_a_success_are_errors() {
        let error = "data: {\"error\":\"failed to process\"}\n\n";
        for body in [error.to_owned(), format!("{TOKEN}{error}")] {
            let record = replay(Api::Triton, true, &body);
            assert_eq!(record.outcome, Outcome::StreamError);
            assert_eq!(
                &*record.error.expect("an error").message,
                "failed to process"
            );
        }
    }

    #[test]
    fn a_whole_answer_is_read() {
        let record = replay(
            Api::Triton,
            false,
            r#"{"model_name":"m","model_version":"1","sequence_id":0,"text_output":"a b"}"#,
        );
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
    }
}
