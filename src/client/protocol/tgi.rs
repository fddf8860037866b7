//! `/generate` and `/generate_stream` of text-generation-inference.
//!
//! Each event of a stream is one token, also those that show no text (`special`, or half a
//! character). The last one repeats the whole text, which is no token then, and holds the
//! details that the request asks for. There is no way to ask for an exact length: no least
//! number of tokens, and no going on after an end-of-sequence token.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::asked::flat;
use super::count::Count;
use super::several::Several;
use super::text::Text;
use super::{Ask, Channel, Said, Usage, fault};
use crate::client::framing::Event;
use crate::measurement::TokenSource;

#[derive(Serialize)]
struct Body<'a> {
    inputs: &'a str,
    parameters: Parameters,
}

#[derive(Serialize)]
struct Parameters {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_new_tokens: Option<u32>,
    /// Finish reason and counts; without it a response is text and nothing else.
    details: bool,
}

pub(super) fn path(ask: &Ask<'_>) -> String {
    let path = if ask.streaming {
        "/generate_stream"
    } else {
        "/generate"
    };
    path.to_owned()
}

pub(super) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let body = Body {
        inputs: &flat(ask.prompt),
        parameters: Parameters {
            max_new_tokens: ask.prompt.output_tokens,
            details: true,
        },
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(borrow)]
    token: Option<Token<'a>>,
    #[serde(borrow)]
    generated_text: Option<Text<'a>>,
    #[serde(borrow)]
    details: Option<Details<'a>>,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Token<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    special: Option<bool>,
}

#[derive(Deserialize)]
struct Details<'a> {
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    #[serde(default)]
    generated_tokens: Count,
    #[serde(default)]
    input_length: Count,
    /// The tokens of the prompt, where a whole answer lists them.
    prefill: Option<Vec<IgnoredAny>>,
}

pub(super) fn read<'a>(event: Event<'a>, said: &mut Said<'a>) -> Result<(), serde_json::Error> {
    // A whole answer may be an array of one, as at the root of the server.
    let answers: Several<Incoming<'a>> = serde_json::from_slice(event.data)?;
    for (choice, incoming) in (0..).zip(answers) {
        let tells = incoming.error.is_some() || incoming.detail.is_some();
        fault::note(event, tells, said)?;
        incoming.say(choice, said);
    }
    Ok(())
}

impl<'a> Incoming<'a> {
    fn say(self, choice: u32, said: &mut Said<'a>) {
        said.done = self.generated_text.is_some();
        if let Some(token) = self.token {
            said.listed = Some((1, TokenSource::TokenIds));
            let special = token.special.unwrap_or(false);
            match token.text.filter(|text| !special && !text.0.is_empty()) {
                Some(text) => said.say(choice, Channel::Output, text.0),
                None => said.hidden_token = true,
            }
        } else if let Some(text) = self.generated_text {
            said.say(choice, Channel::Output, text.0);
        }
        let Some(details) = self.details else {
            return;
        };
        let listed = details.prefill.map(|tokens| Count::from(tokens.len()));
        let input = details
            .input_length
            .or(listed.unwrap_or_default().positive());
        let none = Count::default();
        said.usage = Some(Usage::of(input, details.generated_tokens, none, none));
        if let Some(reason) = details.finish_reason {
            said.finish(&reason.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::{asked, replay};
    use crate::measurement::{Api, Outcome};

    const TOKEN: &str = "data:{\"index\":1,\"token\":{\"id\":5,\"text\":\" a\",\"logprob\":-0.1,\
         \"special\":false},\"top_tokens\":[],\"generated_text\":null,\"details\":null}\n\n";
    const LAST: &str = "data:{\"index\":3,\"token\":{\"id\":2,\"text\":\"</s>\",\"logprob\":-0.1,\
         \"special\":true},\"generated_text\":\" a a\",\"details\":{\"finish_reason\":\
         \"eos_token\",\"generated_tokens\":3,\"seed\":null,\"input_length\":6}}\n\n";

    #[test]
    fn the_request_asks_for_details() {
        assert_eq!(
            asked(Api::Tgi, true, Some(8)),
            (
                "/generate_stream".to_owned(),
                r#"{"inputs":"hi","parameters":{"max_new_tokens":8,"details":true}}"#.to_owned()
            )
        );
        assert_eq!(
            asked(Api::Tgi, false, None),
            (
                "/generate".to_owned(),
                r#"{"inputs":"hi","parameters":{"details":true}}"#.to_owned()
            )
        );
    }

    #[test]
    fn each_event_is_a_token_and_the_last_shows_none() {
        let record = replay(Api::Tgi, true, &format!("{TOKEN}:\n\n{TOKEN}{LAST}"));
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.chunks.len(), 3);
        assert_eq!(record.finish_reason.as_deref(), Some("eos_token"));
        assert_eq!(
            (record.tokens.input, record.tokens.output),
            (Some(6), Some(3))
        );
    }

    #[test]
    fn the_whole_text_is_the_end_even_without_details() {
        let end = r#"data:{"token":{"id":5,"text":" a","special":false},"generated_text":" a"}"#;
        let record = replay(Api::Tgi, true, end);
        assert_eq!((record.outcome, record.chunks.len()), (Outcome::Ok, 1));
        let record = replay(Api::Tgi, true, TOKEN);
        assert_eq!(record.outcome, Outcome::StreamCut);
    }

    #[test]
    fn errors_inside_a_success_are_errors() {
        let error = "data:{\"error\":\"Model is overloaded\",\"error_type\":\"overloaded\"}\n\n";
        for body in [error.to_owned(), format!("{TOKEN}{error}")] {
            let record = replay(Api::Tgi, true, &body);
            assert_eq!(record.outcome, Outcome::StreamError);
            let error = record.error.expect("an error");
            assert_eq!(
                (&*error.kind, &*error.message),
                ("overloaded", "Model is overloaded")
            );
        }
    }

    #[test]
    fn a_whole_answer_is_read() {
        let answer = r#"{"generated_text":" a b","details":{"finish_reason":"length",
            "generated_tokens":2,"prefill":[{"id":1},{"id":7},{"id":8}],"tokens":[]}}"#;
        for body in [answer.to_owned(), format!("[{answer}]")] {
            let record = replay(Api::Tgi, false, &body);
            assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
            assert_eq!(record.finish_reason.as_deref(), Some("length"));
            assert_eq!(
                (record.tokens.input, record.tokens.output),
                (Some(3), Some(2))
            );
        }
        let record = replay(Api::Tgi, false, r#"{"generated_text":" a b"}"#);
        assert_eq!((record.outcome, record.tokens.output), (Outcome::Ok, None));
    }
}
