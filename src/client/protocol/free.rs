//! Bodies of the operator's own: sent as they are (`raw`) or made from a template (`template`).
//!
//! Both are checked when they are read, and a template is tried out on two prompts, so that a
//! mistake shows at the start and not in the records. Where the answer's text is, the operator
//! says as a JSON path (RFC 9535); else it is looked for where servers are known to put it.
//!
//! A template sees `text`, `texts` (a list of that one text), `prompt` (the same as `text`),
//! `messages`, `query`, `passages`, `model`, `stream`, `max_tokens` (none, where the server
//! decides) and `input_tokens`. Nothing is escaped by itself: `{{ text|tojson }}`, without
//! quotes around it, makes a JSON string of any text.

mod find;

use minijinja::{Environment, UndefinedBehavior, context};
use serde_json::Value;
use serde_json_path::JsonPath;

use super::asked::{self, flat};
use super::rerank::Question;
use super::{Ask, Channel, ProtocolError, Said};
use crate::client::framing::Event;
use crate::config::RequestConfig;
use crate::load::workload::Prompt;
use crate::measurement::Api;

/// Where a body goes for which no path is given.
pub(super) const PATH: &str = "/";
/// The template's name in its environment. Without an ending, so that nothing is escaped.
const NAME: &str = "body";
/// What a template sees.
const VARIABLES: [&str; 10] = [
    "text",
    "texts",
    "prompt",
    "messages",
    "query",
    "passages",
    "model",
    "stream",
    "max_tokens",
    "input_tokens",
];
/// A text that breaks a template that puts it between quotes by hand.
const AWKWARD: &str = "a \"quoted\" \\ word\nand another line";

/// What the operator said about the body and about where the answer's text is.
#[derive(Debug)]
pub(super) struct Free {
    body: Body,
    text: Option<JsonPath>,
}

#[derive(Debug)]
enum Body {
    Verbatim(String),
    Template(Box<Environment<'static>>),
}

impl Free {
    /// Reads template and path.
    pub(super) fn new(api: Api, config: &RequestConfig) -> Result<Self, ProtocolError> {
        let body = config.body.clone().ok_or(ProtocolError::NoBody)?;
        let text = config.text.as_deref().map(json_path).transpose()?;
        let body = match api {
            Api::Template => Body::Template(Box::new(template(body, config)?)),
            _ => Body::Verbatim(body),
        };
        Ok(Self { body, text })
    }

    /// The body.
    ///
    /// # Errors
    ///
    /// If a template that could be rendered at load cannot be rendered now, or makes no JSON.
    pub(super) fn body(&self, ask: &Ask<'_>) -> Result<Vec<u8>, ProtocolError> {
        match &self.body {
            Body::Verbatim(body) => Ok(body.clone().into_bytes()),
            Body::Template(environment) => {
                let text = render(environment, ask).map_err(|error| not_rendered(&error))?;
                serde_json::from_str::<serde::de::IgnoredAny>(&text)
                    .map_err(|error| ProtocolError::Invalid(format!("the template: {error}")))?;
                Ok(text.into_bytes())
            }
        }
    }

    /// Reads an event or a whole answer. What is no JSON is text as it is.
    ///
    /// # Errors
    ///
    /// If it begins as a JSON object or array and is none.
    pub(super) fn read<'a>(
        &self,
        event: Event<'a>,
        said: &mut Said<'a>,
    ) -> Result<(), serde_json::Error> {
        let data = event.data;
        let json: Value = match data.trim_ascii().first() {
            Some(b'{' | b'[') => serde_json::from_slice(data)?,
            Some(b'"') if let Ok(text) = serde_json::from_slice(data) => text,
            _ => {
                said.say(0, Channel::Output, String::from_utf8_lossy(data));
                return Ok(());
            }
        };
        match &self.text {
            Some(path) => {
                for found in path.query(&json).all() {
                    find::say(found, said);
                }
            }
            None => find::answer(&json, said),
        }
        find::rest(&json, said);
        Ok(())
    }
}

fn json_path(path: &str) -> Result<JsonPath, ProtocolError> {
    JsonPath::parse(path).map_err(|error| {
        ProtocolError::Invalid(format!(
            "`text` is `{path}`, wanted a JSON path like `$.choices[*].text`: at character {}, {}",
            error.position(),
            error.message()
        ))
    })
}

/// A template that takes more steps than this is given up: rendering happens where requests are
/// timed.
const MOST_STEPS: u64 = 100_000;

/// The template, read and tried out.
fn template(source: String, config: &RequestConfig) -> Result<Environment<'static>, ProtocolError> {
    let mut environment = Environment::new();
    // A misspelt field of a variable would else be an empty text.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(MOST_STEPS));
    environment
        .add_template_owned(NAME, source)
        .map_err(|error| not_rendered(&error))?;
    if let Some(name) = unknown(&environment) {
        return Err(ProtocolError::Invalid(format!(
            "the template asks for `{name}`, wanted one of `{}`",
            VARIABLES.join("`, `")
        )));
    }
    for output_tokens in [Some(16), None] {
        let prompt = Prompt {
            text: AWKWARD.to_owned(),
            input_tokens: Some(16),
            output_tokens,
            ..Prompt::default()
        };
        let ask = Ask {
            model: "model",
            prompt: &prompt,
            streaming: true,
            style: config,
        };
        let body = render(&environment, &ask).map_err(|error| not_rendered(&error))?;
        if let Err(error) = serde_json::from_str::<Value>(&body) {
            let line = body.lines().nth(error.line().saturating_sub(1));
            return Err(ProtocolError::Invalid(format!(
                "the template makes no JSON of a text with quotes and a line break, wanted \
                 `{{{{ text|tojson }}}}` without quotes around it: {error}: `{}`",
                super::said::cut(line.unwrap_or_default(), 200)
            )));
        }
    }
    Ok(environment)
}

/// The first name in the template that nothing stands behind. A filter would take it for null.
fn unknown(environment: &Environment<'_>) -> Option<String> {
    let template = environment.get_template(NAME).ok()?;
    let is_known = |name: &str| {
        VARIABLES.contains(&name) || environment.globals().any(|(global, _)| global == name)
    };
    let names = template.undeclared_variables(false);
    names.into_iter().filter(|name| !is_known(name)).min()
}

fn not_rendered(error: &minijinja::Error) -> ProtocolError {
    let line = error.line().unwrap_or(1);
    let detail = error.detail().unwrap_or_default();
    let space = if detail.is_empty() { "" } else { ": " };
    ProtocolError::Invalid(format!(
        "the template is wrong in line {line}: {}{space}{detail}",
        error.kind()
    ))
}

fn render(environment: &Environment<'_>, ask: &Ask<'_>) -> Result<String, minijinja::Error> {
    let text = &*flat(ask.prompt);
    let messages: Vec<_> = asked::all(ask.prompt)
        .into_iter()
        .map(|(role, content)| context! { role, content })
        .collect();
    let Question { query, passages } = Question::cut(text);
    environment.get_template(NAME)?.render(context! {
        text,
        texts => [text],
        prompt => text,
        messages,
        query,
        passages,
        model => ask.model,
        stream => ask.streaming,
        max_tokens => ask.prompt.output_tokens,
        input_tokens => ask.prompt.input_tokens,
    })
}

#[cfg(test)]
mod tests;
