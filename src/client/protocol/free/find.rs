//! Where in an answer of unknown shape its text, vectors, ranks and errors are.
//!
//! The shapes are looked for in a fixed order, and the first that is there is taken, so that a
//! text that an answer holds twice is not counted twice.

use serde_json::Value;

use crate::client::protocol::{Channel, Said, Usage, error_in, usage as shared};

/// Fields that hold the text, by how sure it is that they do.
const TEXTS: [&str; 6] = [
    "text",
    "generated_text",
    "content",
    "response",
    "output_text",
    "text_output",
];
/// Fields that hold the score of a rank.
const SCORES: [&str; 3] = ["relevance_score", "score", "logit"];
/// Answers of one request lie in a list of this depth at most.
const DEPTH: u8 = 2;

/// Says what lies at the operator's path: a text is a piece, and so is each text of a list; a
/// list of numbers is a vector; other lists hold one answer for each element.
pub(super) fn say(found: &Value, said: &mut Said<'_>) {
    match found {
        Value::String(text) => said.say(0, Channel::Output, text.clone()),
        Value::Array(list) if list.iter().any(Value::is_string) => {
            for text in list.iter().filter_map(Value::as_str) {
                said.say(0, Channel::Output, text.to_owned());
            }
        }
        Value::Array(list) if is_vector(list) => add(said, 1),
        Value::Array(list) => add(said, list.iter().filter(|one| !one.is_null()).count()),
        Value::Number(_) | Value::Object(_) => add(said, 1),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Says what an answer of unknown shape holds.
pub(super) fn answer(json: &Value, said: &mut Said<'_>) {
    in_shape(json, said, DEPTH);
}

fn in_shape(json: &Value, said: &mut Said<'_>, depth: u8) {
    match json {
        Value::String(text) => said.say(0, Channel::Output, text.clone()),
        Value::Array(list) if is_vector(list) => add(said, 1),
        Value::Array(list) => {
            let vectors = list.iter().filter(|row| is_row(row)).count();
            let ranks = list.iter().filter(|rank| is_rank(rank)).count();
            add(said, vectors + ranks);
            if vectors + ranks == 0 && depth > 0 {
                for one in list {
                    in_shape(one, said, depth - 1);
                }
            }
        }
        Value::Object(_) => {
            for find in [choices, delta, vectors, ranks, text] {
                if find(json, said) {
                    break;
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// `choices` of chat completions and completions.
fn choices(json: &Value, said: &mut Said<'_>) -> bool {
    let Some(choices) = json.get("choices").and_then(Value::as_array) else {
        return false;
    };
    for (place, choice) in (0_u32..).zip(choices) {
        let index = choice
            .get("index")
            .and_then(Value::as_u64)
            .and_then(|index| u32::try_from(index).ok())
            .unwrap_or(place);
        for holder in ["delta", "message"]
            .map(|key| choice.get(key))
            .into_iter()
            .flatten()
        {
            let thought = texts_in(holder, "reasoning").or(texts_in(holder, "reasoning_content"));
            if let Some(thought) = thought {
                said.say(index, Channel::Reasoning, thought);
            }
            if let Some(text) = texts_in(holder, "content") {
                said.say(index, Channel::Output, text);
            }
        }
        if let Some(text) = texts_in(choice, "text") {
            said.say(index, Channel::Output, text);
        }
    }
    true
}

/// `delta`, a text or an object with one.
fn delta(json: &Value, said: &mut Said<'_>) -> bool {
    let Some(delta) = json.get("delta") else {
        return false;
    };
    match delta {
        Value::String(text) => said.say(0, Channel::Output, text.clone()),
        _ => return text(delta, said),
    }
    true
}

fn vectors(json: &Value, said: &mut Said<'_>) -> bool {
    let count = if let Some(data) = json.get("data").and_then(Value::as_array) {
        data.iter().filter_map(|one| one.get("embedding")).count()
    } else if let Some(list) = json.get("embeddings").and_then(Value::as_array) {
        if is_vector(list) { 1 } else { list.len() }
    } else {
        usize::from(json.get("embedding").is_some_and(is_row))
    };
    add(said, count);
    count > 0
}

fn ranks(json: &Value, said: &mut Said<'_>) -> bool {
    let lists = ["results", "rankings"].into_iter();
    let count: usize = lists
        .filter_map(|key| json.get(key)?.as_array())
        .map(|list| list.iter().filter(|rank| is_rank(rank)).count())
        .sum();
    add(said, count);
    count > 0
}

/// The first of the known fields that holds a text; at last `message.content`.
fn text(json: &Value, said: &mut Said<'_>) -> bool {
    let in_message = json.get("message").and_then(|inner| inner.get("content"));
    let fields = TEXTS.iter().filter_map(|key| json.get(key));
    let found = fields.chain(in_message).find_map(|value| {
        let text = value.as_array().map_or(Some(value), |list| list.first());
        text?.as_str().filter(|text| !text.is_empty())
    });
    if let Some(text) = found {
        said.say(0, Channel::Output, text.to_owned());
    }
    found.is_some()
}

/// Usage, finish reason and error, wherever the text was. A body with an answer may have a
/// field `detail` or `message` that is no error; one with `error` has failed.
pub(super) fn rest(json: &Value, said: &mut Said<'_>) {
    said.usage = json.get("usage").and_then(usage);
    let finish = json.get("finish_reason").or_else(|| {
        let choices = json.get("choices")?.as_array()?;
        choices
            .iter()
            .find_map(|choice| choice.get("finish_reason"))
    });
    if let Some(reason) = finish.and_then(Value::as_str) {
        said.finish(reason);
    }
    let failed = json.get("error").is_some_and(|error| !error.is_null());
    if failed || (!said.has_token() && said.answers == 0) {
        said.error = error_in(json);
    }
}

/// Usage as the servers of the `OpenAI` family write it.
fn usage(found: &Value) -> Option<Usage> {
    let text = found.to_string();
    shared::usage(serde_json::from_str(&text).ok()?)
}

fn texts_in(holder: &Value, key: &str) -> Option<String> {
    holder.get(key)?.as_str().map(str::to_owned)
}

fn is_vector(list: &[Value]) -> bool {
    list.first().is_some_and(Value::is_number)
}

fn is_row(value: &Value) -> bool {
    value.as_array().is_some_and(|list| is_vector(list))
}

fn is_rank(value: &Value) -> bool {
    SCORES
        .iter()
        .any(|key| value.get(key).is_some_and(Value::is_number))
}

fn add(said: &mut Said<'_>, count: usize) {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    said.answers = said.answers.saturating_add(count);
}
