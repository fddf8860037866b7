//! Embeddings: `OpenAI`'s shape, that of chat messages, NIM's, and the one of
//! text-embeddings-inference. One text goes out, its vector comes back, whole.
//!
//! A vector is an array of numbers or, where base64 was asked for, a text. It is counted and not
//! read: see [`super::tally`].

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::asked::flat;
use super::lenient::Maybe;
use super::tally::{Answer, Answers, RawUsage, Vector, is_list, note_error, usage};
use super::text::Text;
use super::{Ask, Said};
use crate::client::framing::Event;
use crate::measurement::Api;

pub(super) fn path(api: Api, _ask: &Ask<'_>) -> String {
    match api {
        Api::TeiEmbed => "/embed",
        _ => "/v1/embeddings",
    }
    .to_owned()
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    #[serde(flatten)]
    input: Asked<'a>,
}

/// The text, in the words of each server.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Asked<'a> {
    Input([&'a str; 1]),
    Inputs([&'a str; 1]),
    Messages([Message<'a>; 1]),
    #[serde(untagged)]
    Nim {
        input: [&'a str; 1],
        /// Models that embed questions and passages differently refuse a request without it.
        input_type: &'static str,
    },
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: [Part<'a>; 1],
}

#[derive(Serialize)]
struct Part<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// The request body.
pub(super) fn body(api: Api, ask: &Ask<'_>) -> Vec<u8> {
    let text = &*flat(ask.prompt);
    let body = Body {
        // Text-embeddings-inference serves one model and does not know the field.
        model: if api == Api::TeiEmbed { "" } else { ask.model },
        input: match api {
            Api::TeiEmbed => Asked::Inputs([text]),
            Api::NimEmbeddings => Asked::Nim {
                input: [text],
                input_type: "query",
            },
            Api::ChatEmbeddings => Asked::Messages([Message {
                role: "user",
                content: [Part {
                    r#type: "text",
                    text,
                }],
            }]),
            _ => Asked::Input([text]),
        },
    };
    serde_json::to_vec(&body).expect("texts always serialise")
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(default)]
    data: Answers<Item>,
    #[serde(default)]
    usage: Maybe<RawUsage>,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
    #[serde(borrow)]
    object: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    embedding: Vector,
}

impl Answer for Item {
    fn is_answer(&self) -> bool {
        self.embedding.is_answer()
    }
}

/// Reads a whole answer.
///
/// # Errors
///
/// If it is neither an object nor an array of JSON.
pub(super) fn read<'a>(
    _api: Api,
    event: Event<'a>,
    said: &mut Said<'a>,
) -> Result<(), serde_json::Error> {
    if is_list(event) {
        said.answers = bare(event.data)?;
        return Ok(());
    }
    let whole: Whole<'a> = serde_json::from_slice(event.data)?;
    said.answers = whole.data.0;
    said.usage = usage(whole.usage, Maybe::Absent);
    if whole.error.is_some()
        || whole.detail.is_some()
        || whole.object.is_some_and(|object| object.0 == "error")
    {
        note_error(event, said)?;
    }
    Ok(())
}

/// Vectors in a bare array: as many as it has arrays, or one if it holds the numbers itself.
fn bare(data: &[u8]) -> Result<u32, serde_json::Error> {
    /// A vector whose elements may stand alone.
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Row(Vector);
    impl Answer for Row {
        fn is_answer(&self) -> bool {
            self.0.is_answer() && !self.0.is_number
        }
    }
    let rows = serde_json::from_slice::<Answers<Row>>(data)?.0;
    if rows > 0 {
        return Ok(rows);
    }
    // Numbers, or nothing: a list of other things is no vector.
    let vector: Vector = serde_json::from_slice(data)?;
    Ok(u32::from(vector.is_answer()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::protocol::Usage;
    use crate::config::RequestConfig;
    use crate::load::workload::Prompt;

    fn asked(api: Api, model: &str) -> String {
        let prompt = Prompt {
            text: "a \"b\"".to_owned(),
            input_tokens: Some(2),
            output_tokens: None,
            ..Prompt::default()
        };
        let style = RequestConfig::default();
        let ask = Ask {
            model,
            prompt: &prompt,
            streaming: false,
            style: &style,
        };
        let body = String::from_utf8(body(api, &ask)).expect("JSON is UTF-8");
        format!("{} {body}", path(api, &ask))
    }

    fn said(data: &str) -> Said<'_> {
        let mut said = Said::default();
        let event = Event {
            name: b"",
            data: data.as_bytes(),
        };
        read(Api::Embeddings, event, &mut said).expect("it is JSON");
        said
    }

    #[test]
    fn each_server_is_asked_in_its_own_words() {
        for (api, model, expected) in [
            (
                Api::Embeddings,
                "m",
                r#"/v1/embeddings {"model":"m","input":["a \"b\""]}"#,
            ),
            (
                Api::Embeddings,
                "",
                r#"/v1/embeddings {"input":["a \"b\""]}"#,
            ),
            (
                Api::NimEmbeddings,
                "m",
                r#"/v1/embeddings {"model":"m","input":["a \"b\""],"input_type":"query"}"#,
            ),
            (
                Api::ChatEmbeddings,
                "m",
                concat!(
                    r#"/v1/embeddings {"model":"m","messages":[{"role":"user","#,
                    r#""content":[{"type":"text","text":"a \"b\""}]}]}"#
                ),
            ),
            (Api::TeiEmbed, "m", r#"/embed {"inputs":["a \"b\""]}"#),
        ] {
            assert_eq!(asked(api, model), expected, "{api:?}");
        }
    }

    #[test]
    fn vectors_are_counted_whatever_they_are_made_of() {
        for (data, answers) in [
            (
                r#"{"data":[{"object":"embedding","index":0,"embedding":[0.1,-2e-3]}]}"#,
                1,
            ),
            (
                r#"{"data":[{"embedding":"AACAPwAAAEA="},{"embedding":[1]}]}"#,
                2,
            ),
            (r#"{"data":[{"embedding":{"float":[1.5]}}]}"#, 1),
            (
                r#"{"data":[{"embedding":[]},{"embedding":null},{"embedding":""},{}]}"#,
                0,
            ),
            (r#"{"data":null}"#, 0),
            (r#"{"data":[]}"#, 0),
            ("{}", 0),
            ("[[0.1,0.2],[0.3,0.4]]", 2),
            (" [[[0.1],[0.2]]]", 1),
            ("[0.1,2,-3]", 1),
            (r#"{"data":[{"embedding":"AAA="},{"embedding":"AA=="}]}"#, 2),
            ("[[]]", 0),
            ("[]", 0),
        ] {
            assert_eq!(said(data).answers, answers, "{data}");
        }
    }

    #[test]
    fn usage_is_that_of_the_input() {
        let whole = r#"{"data":[],"usage":{"prompt_tokens":7,"total_tokens":9}}"#;
        let expected = Usage {
            input: Some(7),
            ..Usage::default()
        };
        assert_eq!(said(whole).usage, Some(expected));
        let total = r#"{"data":[],"usage":{"total_tokens":9.0}}"#;
        let expected = Usage {
            input: Some(9),
            ..Usage::default()
        };
        assert_eq!(said(total).usage, Some(expected));
        for none in [r#"{"usage":null}"#, r#"{"usage":{}}"#] {
            assert_eq!(said(none).usage, None, "{none}");
        }
    }

    #[test]
    fn absurd_usage_spoils_no_vector() {
        for count in ["-1", "1.5", "1e30", "\"7\"", "[]"] {
            let data =
                format!(r#"{{"data":[{{"embedding":[1]}}],"usage":{{"prompt_tokens":{count}}}}}"#);
            let said = said(&data);
            assert_eq!(said.answers, 1, "{count}");
            let usage = said.usage.expect("it was noted");
            assert!(usage.bad && usage.input.is_none(), "{count}");
        }
    }

    #[test]
    fn errors_are_found_in_every_shape() {
        for data in [
            r#"{"error":{"message":"too long","type":"invalid_request_error"}}"#,
            r#"{"error":"too long","error_type":"Validation"}"#,
            r#"{"object":"error","message":"too long","type":"BadRequestError","code":400}"#,
            r#"{"detail":"too long"}"#,
        ] {
            let error = said(data).error.expect("it is an error");
            assert_eq!(&*error.message, "too long", "{data}");
        }
        assert_eq!(
            said(r#"{"error":null,"object":"list","data":[]}"#).error,
            None
        );
    }

    #[test]
    fn what_is_no_json_or_no_vector_is_an_error() {
        let mut said = Said::default();
        for data in [
            &b"{\"data\":[{\"embedding\":[0.1,"[..],
            b"[[0.1",
            b"{\"data\":7}",
            b"{\"data\":[{\"embedding\":[null]}]}",
            b"{\"data\":[{\"embedding\":[0.1,null,0.2]}]}",
            b"{\"data\":[{\"embedding\":[true]}]}",
            b"{\"data\":[{\"embedding\":{\"float\":[null]}}]}",
            b"{\"data\":[{\"embedding\":\"AAC*PwAA\"}]}",
            b"{\"data\":[{\"embedding\":\"AACAP\"}]}",
            b"{\"data\":[{\"embedding\":\"A===\"}]}",
            b"[[null]]",
            b"[null]",
            b"[0.1,false]",
        ] {
            let event = Event { name: b"", data };
            assert!(read(Api::TeiEmbed, event, &mut said).is_err());
        }
    }
}
