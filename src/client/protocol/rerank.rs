//! Reranking in the shapes of Jina and vLLM, Cohere, text-embeddings-inference and NIM. A query
//! and some passages go out, one score for each passage comes back, whole.
//!
//! Query and passages are cut from the prompt's text: what makes a prompt unlike any other
//! stands at its start, so it is in the query, and with it in every pair that is scored.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::asked::flat;
use super::lenient::Maybe;
use super::tally::{Answer, Answers, Meta, RawUsage, Vector, is_list, note_error, usage};
use super::text::Text;
use super::{Ask, Said};
use crate::client::framing::Event;
use crate::measurement::Api;

/// Words of the query: about what people type, and more than the words that make a prompt
/// unlike any other.
const QUERY_WORDS: usize = 12;
/// Passages of one request: enough to make a batch, and few enough that each keeps some words of
/// a short prompt.
const PASSAGES: usize = 8;

pub(super) fn path(api: Api, _ask: &Ask<'_>) -> String {
    match api {
        Api::CohereRerank => "/v2/rerank",
        Api::TeiRerank => "/rerank",
        Api::NimRerank => "/v1/ranking",
        _ => "/v1/rerank",
    }
    .to_owned()
}

/// A query and what is to be ranked by it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) query: String,
    /// Of equal numbers of words but for the last; at least one.
    pub(super) passages: Vec<String>,
}

impl Question {
    /// Cuts `text`: its first words ask, the rest is ranked. One word alone is both.
    pub(super) fn cut(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let query = QUERY_WORDS.min(words.len() / 2).max(1).min(words.len());
        let (query, rest) = words.split_at(query);
        let rest = if rest.is_empty() { query } else { rest };
        let each = rest.len().div_ceil(PASSAGES).max(1);
        let mut passages: Vec<String> = rest.chunks(each).map(|words| words.join(" ")).collect();
        if passages.is_empty() {
            passages.push(String::new());
        }
        Self {
            query: query.join(" "),
            passages,
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    model: &'a str,
    #[serde(flatten)]
    question: Shape<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Shape<'a> {
    Documents {
        query: &'a str,
        documents: &'a [String],
    },
    Texts {
        query: &'a str,
        texts: &'a [String],
    },
    Nim {
        query: OneText<'a>,
        passages: Vec<OneText<'a>>,
    },
}

#[derive(Serialize)]
struct OneText<'a> {
    text: &'a str,
}

/// The request body.
pub(super) fn body(api: Api, ask: &Ask<'_>) -> Vec<u8> {
    let text = flat(ask.prompt);
    let question = Question::cut(&text);
    let (query, passages) = (&*question.query, &*question.passages);
    let body = Body {
        // Text-embeddings-inference serves one model and does not know the field.
        model: if api == Api::TeiRerank { "" } else { ask.model },
        question: match api {
            Api::TeiRerank => Shape::Texts {
                query,
                texts: passages,
            },
            Api::NimRerank => Shape::Nim {
                query: OneText { text: query },
                passages: passages.iter().map(|text| OneText { text }).collect(),
            },
            _ => Shape::Documents {
                query,
                documents: passages,
            },
        },
    };
    serde_json::to_vec(&body).expect("texts always serialise")
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(default)]
    results: Answers<Rank>,
    #[serde(default)]
    rankings: Answers<Rank>,
    #[serde(default)]
    usage: Maybe<RawUsage>,
    #[serde(default)]
    meta: Maybe<Meta>,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
    /// Cohere's errors have nothing else.
    message: Option<IgnoredAny>,
    #[serde(borrow)]
    object: Option<Text<'a>>,
}

/// One rank; servers differ in what they call its score.
#[derive(Deserialize)]
struct Rank {
    #[serde(default, alias = "score", alias = "logit")]
    relevance_score: Vector,
}

impl Answer for Rank {
    fn is_answer(&self) -> bool {
        self.relevance_score.is_number
    }
}

/// Reads a whole answer. The shape is told by the answer and not by the protocol: gateways put
/// one server's shape behind another's path.
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
        said.answers = serde_json::from_slice::<Answers<Rank>>(event.data)?.0;
        return Ok(());
    }
    let whole: Whole<'a> = serde_json::from_slice(event.data)?;
    said.answers = whole.results.0.saturating_add(whole.rankings.0);
    said.usage = usage(whole.usage, whole.meta);
    if whole.error.is_some()
        || whole.detail.is_some()
        || whole.object.is_some_and(|object| object.0 == "error")
    {
        note_error(event, said)?;
    } else if whole.message.is_some() && said.answers == 0 {
        said.error = message_alone(event.data)?;
    }
    Ok(())
}

/// `{"message":"…"}`, as Cohere says what is wrong.
fn message_alone(
    data: &[u8],
) -> Result<Option<crate::measurement::RequestError>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Alone<'a> {
        #[serde(borrow)]
        message: Text<'a>,
    }
    let alone: Alone<'_> = serde_json::from_slice(data)?;
    Ok(Some(super::request_error("error", &alone.message.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::protocol::Usage;
    use crate::config::RequestConfig;
    use crate::load::workload::Prompt;

    fn asked(api: Api, text: &str) -> String {
        let prompt = Prompt {
            text: text.to_owned(),
            input_tokens: Some(2),
            output_tokens: None,
            ..Prompt::default()
        };
        let style = RequestConfig::default();
        let ask = Ask {
            model: "m",
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
        read(Api::Rerank, event, &mut said).expect("it is JSON");
        said
    }

    #[test]
    fn each_server_is_asked_in_its_own_words() {
        for (api, expected) in [
            (
                Api::Rerank,
                r#"/v1/rerank {"model":"m","query":"a b","documents":["c","d","e"]}"#,
            ),
            (
                Api::CohereRerank,
                r#"/v2/rerank {"model":"m","query":"a b","documents":["c","d","e"]}"#,
            ),
            (
                Api::TeiRerank,
                r#"/rerank {"query":"a b","texts":["c","d","e"]}"#,
            ),
            (
                Api::NimRerank,
                concat!(
                    r#"/v1/ranking {"model":"m","query":{"text":"a b"},"#,
                    r#""passages":[{"text":"c"},{"text":"d"},{"text":"e"}]}"#
                ),
            ),
        ] {
            assert_eq!(asked(api, "a b c d e"), expected, "{api:?}");
        }
    }

    #[test]
    fn a_prompt_is_cut_into_a_query_and_up_to_eight_passages() {
        let words: Vec<String> = (0..98).map(|number| number.to_string()).collect();
        let question = Question::cut(&words.join(" "));
        assert_eq!(question.query, "0 1 2 3 4 5 6 7 8 9 10 11");
        let counts: Vec<usize> = question
            .passages
            .iter()
            .map(|passage| passage.split(' ').count())
            .collect();
        assert_eq!(counts, [11, 11, 11, 11, 11, 11, 11, 9]);
        assert!(question.passages[0].starts_with("12 13 "));
        assert!(question.passages[7].ends_with(" 96 97"));
    }

    #[test]
    fn short_prompts_still_ask_for_one_passage() {
        let one = Question::cut("word");
        assert_eq!(
            (&*one.query, &*one.passages),
            ("word", &["word".to_owned()][..])
        );
        let two = Question::cut("ask this");
        assert_eq!(
            (&*two.query, &*two.passages),
            ("ask", &["this".to_owned()][..])
        );
        let none = Question::cut("");
        assert_eq!((&*none.query, none.passages.len()), ("", 1));
    }

    #[test]
    fn ranks_are_counted_in_every_shape() {
        for (data, answers) in [
            (
                r#"{"results":[{"index":1,"relevance_score":0.9,"document":{"text":"c"}},{"index":0,"relevance_score":-1}]}"#,
                2,
            ),
            (
                r#"{"id":"x","results":[{"index":0,"relevance_score":0.1}],"meta":{"api_version":{"version":"2"}}}"#,
                1,
            ),
            (
                r#"[{"index":1,"score":0.99},{"index":0,"score":1e-5,"text":null}]"#,
                2,
            ),
            (
                r#"{"rankings":[{"index":0,"logit":-3.5},{"index":1,"logit":2}]}"#,
                2,
            ),
            (r#"{"results":[]}"#, 0),
            (r#"{"results":null}"#, 0),
            (
                r#"{"results":[{"index":0},{"index":1,"relevance_score":null}]}"#,
                0,
            ),
            ("[]", 0),
            ("{}", 0),
        ] {
            assert_eq!(said(data).answers, answers, "{data}");
            assert_eq!(said(data).error, None, "{data}");
        }
    }

    #[test]
    fn usage_comes_from_usage_or_from_meta() {
        for (data, input) in [
            (r#"{"results":[],"usage":{"total_tokens":56}}"#, Some(56)),
            (
                r#"{"results":[],"usage":{"prompt_tokens":50,"total_tokens":56}}"#,
                Some(50),
            ),
            (
                r#"{"results":[],"meta":{"tokens":{"input_tokens":31}}}"#,
                Some(31),
            ),
            (
                r#"{"results":[],"meta":{"billed_units":{"search_units":1}}}"#,
                None,
            ),
            (
                r#"{"results":[],"meta":{"billed_units":{"input_tokens":12}}}"#,
                Some(12),
            ),
            (r#"{"results":[],"meta":null}"#, None),
        ] {
            let expected = input.map(|input| Usage {
                input: Some(input),
                ..Usage::default()
            });
            assert_eq!(said(data).usage, expected, "{data}");
        }
    }

    #[test]
    fn errors_are_found_in_every_shape() {
        for data in [
            r#"{"error":{"message":"no model","type":"NotFoundError","code":404}}"#,
            r#"{"error":"no model","error_type":"Validation"}"#,
            r#"{"object":"error","message":"no model"}"#,
            r#"{"detail":"no model"}"#,
            r#"{"id":"x","message":"no model"}"#,
        ] {
            let error = said(data).error.expect("it is an error");
            assert_eq!(&*error.message, "no model", "{data}");
        }
        let thanks = r#"{"message":"done","results":[{"index":0,"relevance_score":1}]}"#;
        assert_eq!(said(thanks).error, None);
    }
}
