//! Open inference v2 over HTTP (`infer`), as `KServe` and Triton speak it; always unary.
//!
//! The prompt is the tensor `text_input`; a model with other tensors is asked with `template`.
//! The text is the tensor `text_output`, or all tensors of bytes where none is called so.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::asked::flat;
use super::segment::segment;
use super::text::Text;
use super::{Ask, Channel, Said, fault};
use crate::client::framing::Event;
use crate::measurement::TokenSource;

/// The name of the text in the answer.
const TEXT: &str = "text_output";
/// Names under which models list the tokens of their answer.
const TOKENS: [&str; 4] = [
    "output_ids",
    "token_ids",
    "output_token_ids",
    "output_tokens",
];

#[derive(Serialize)]
struct Body<'a> {
    inputs: [Tensor<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Parameters>,
}

#[derive(Serialize)]
struct Tensor<'a> {
    name: &'static str,
    shape: [u32; 1],
    datatype: &'static str,
    data: [&'a str; 1],
}

#[derive(Serialize)]
struct Parameters {
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_eos: Option<bool>,
}

pub(super) fn path(ask: &Ask<'_>) -> String {
    format!("/v2/models/{}/infer", segment(ask.model))
}

pub(super) fn body(ask: &Ask<'_>) -> Vec<u8> {
    let exact = ask.style.exact_length;
    let body = Body {
        inputs: [Tensor {
            name: "text_input",
            shape: [1],
            datatype: "BYTES",
            data: [&flat(ask.prompt)],
        }],
        parameters: ask.prompt.output_tokens.map(|max_tokens| Parameters {
            max_tokens,
            min_tokens: exact.then_some(max_tokens),
            ignore_eos: exact.then_some(true),
        }),
    };
    serde_json::to_vec(&body).expect("texts, numbers and flags always serialise")
}

#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(borrow)]
    outputs: Option<Vec<Output<'a>>>,
    error: Option<IgnoredAny>,
    detail: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    datatype: Option<Text<'a>>,
    /// Flat, or nested as its shape is.
    #[serde(default)]
    data: Value,
}

impl Output<'_> {
    fn is_text(&self) -> bool {
        let is = |datatype: &Text<'_>| matches!(&*datatype.0, "BYTES" | "STRING");
        self.datatype.as_ref().is_some_and(is)
    }
}

pub(super) fn read<'a>(event: Event<'a>, said: &mut Said<'a>) -> Result<(), serde_json::Error> {
    let incoming: Incoming<'a> = serde_json::from_slice(event.data)?;
    let tells = incoming.error.is_some() || incoming.detail.is_some();
    fault::note(event, tells, said)?;
    let outputs = incoming.outputs.unwrap_or_default();
    let named = outputs.iter().any(|output| output.name.0 == TEXT);
    for output in outputs {
        if TOKENS.contains(&&*output.name.0) && !output.is_text() {
            let count = u32::try_from(elements(&output.data).len()).unwrap_or(u32::MAX);
            said.listed = Some((count, TokenSource::TokenIds));
            said.hidden_token |= count > 0;
        } else if output.is_text() && (!named || output.name.0 == TEXT) {
            for (choice, text) in (0..).zip(elements(&output.data)) {
                let text = text.as_str().unwrap_or_default();
                said.say(choice, Channel::Output, text.to_owned());
            }
        }
    }
    Ok(())
}

/// The elements of a tensor, row by row. How deep it can be is bounded by the JSON reader.
fn elements(data: &Value) -> Vec<&Value> {
    match data {
        Value::Array(rows) => rows.iter().flat_map(elements).collect(),
        Value::Null => Vec::new(),
        element => vec![element],
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::{asked, replay};
    use crate::measurement::{Api, Outcome, TokenSource};

    #[test]
    fn the_prompt_is_a_tensor() {
        assert_eq!(
            asked(Api::Kserve, false, None),
            (
                "/v2/models/m/infer".to_owned(),
                r#"{"inputs":[{"name":"text_input","shape":[1],"datatype":"BYTES","data":["hi"]}]}"#.to_owned()
            )
        );
        let (_, body) = asked(Api::Kserve, false, Some(8));
        let parameters = r#""parameters":{"max_tokens":8,"min_tokens":8,"ignore_eos":true}}"#;
        assert!(body.ends_with(parameters), "{body}");
    }

    #[test]
    fn texts_and_tokens_are_found_among_the_outputs() {
        let record = replay(
            Api::Kserve,
            false,
            r#"{"model_name":"m","outputs":[
                {"name":"text_output","datatype":"BYTES","shape":[1,1],"data":[["a b"]]},
                {"name":"output_ids","datatype":"INT32","shape":[1,1,3],"data":[[[5,6,7]]]}]}"#,
        );
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        assert_eq!(record.tokens.output, Some(3));
        assert_eq!(record.tokens.source, Some(TokenSource::TokenIds));
        for (outputs, expected) in [
            (
                r#"{"name":"x","datatype":"BYTES","data":["a"]}"#,
                Outcome::Ok,
            ),
            (
                r#"{"name":"x","datatype":"BYTES","data":[""]}"#,
                Outcome::Empty,
            ),
            (
                r#"{"name":"x","datatype":"FP32","data":[1.5]}"#,
                Outcome::Empty,
            ),
            (
                r#"{"name":"x","datatype":"BYTES","data":["a"]},{"name":"text_output","datatype":"BYTES","data":[]}"#,
                Outcome::Empty,
            ),
            ("", Outcome::Empty),
        ] {
            let record = replay(Api::Kserve, false, &format!(r#"{{"outputs":[{outputs}]}}"#));
            assert_eq!(record.outcome, expected, "{outputs}");
        }
    }

    #[test]
    fn an_error_inside_a_success_is_an_error() {
        let record = replay(Api::Kserve, false, r#"{"error":"no such tensor"}"#);
        assert_eq!(record.outcome, Outcome::StreamError);
        assert_eq!(&*record.error.expect("an error").message, "no such tensor");
    }
}
