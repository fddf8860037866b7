//! Prompts that were written to be sent: one, several in a session, lists of messages, and whole
//! request bodies.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Content, Entry, Turn};
use crate::load::trace::error::Fault;
use crate::load::trace::format::Format;
use crate::load::trace::number::Unit;
use crate::load::trace::traces::Bad;
use crate::load::trace::traces::fields::{Raw, length, not_json, object, text, time};

/// What a prompt of one turn has.
#[derive(Deserialize)]
struct Single<'a> {
    #[serde(borrow)]
    text: Raw<'a>,
    #[serde(borrow)]
    texts: Raw<'a>,
    #[serde(borrow)]
    image: Raw<'a>,
    #[serde(borrow)]
    images: Raw<'a>,
    #[serde(borrow)]
    audio: Raw<'a>,
    #[serde(borrow)]
    audios: Raw<'a>,
    #[serde(borrow)]
    video: Raw<'a>,
    #[serde(borrow)]
    videos: Raw<'a>,
    #[serde(borrow)]
    timestamp: Raw<'a>,
    #[serde(borrow)]
    delay: Raw<'a>,
    #[serde(borrow)]
    session_id: Raw<'a>,
    #[serde(borrow)]
    output_length: Raw<'a>,
}

/// One line of `single_turn` or `random_pool`.
pub(super) fn single_turn(line: &[u8], format: Format) -> Result<Entry, Bad> {
    let given: Single = object(line)?;
    if format == Format::RandomPool
        && let Some(raw) = given.timestamp.or(given.delay)
    {
        let name = if given.timestamp.is_some() {
            "timestamp"
        } else {
            "delay"
        };
        return Err(Fault::new(
            name,
            raw.get(),
            "no times: prompts of a pool are drawn",
        ));
    }
    Ok(Entry {
        session: text("session_id", given.session_id)?,
        system: None,
        turns: vec![turn(&given, line)?],
    })
}

fn turn(given: &Single, whole: &[u8]) -> Result<Turn, Bad> {
    let either = [
        (("text", given.text), ("texts", given.texts)),
        (("image", given.image), ("images", given.images)),
        (("audio", given.audio), ("audios", given.audios)),
        (("video", given.video), ("videos", given.videos)),
    ];
    for ((one, value), (several, values)) in either {
        if let (Some(_), Some(values)) = (value, values) {
            let wanted = format!("either `{one}` or `{several}`");
            return Err(Fault::new(several, values.get(), wanted));
        }
    }
    let any = |((_, value), (_, values)): &((&str, Raw), (&str, Raw))| {
        value.is_some() || values.is_some()
    };
    if !either.iter().any(any) {
        return Err(Fault::missing(
            "text",
            "a text, or texts, images, audios or videos",
        ));
    }
    let content = match given.text {
        Some(raw) if !either[1..].iter().any(any) => {
            Content::Text(text("text", Some(raw))?.unwrap_or_default())
        }
        _ => Content::Media(raw(whole)?),
    };
    Ok(Turn {
        content,
        reply: None,
        output_tokens: length("output_length", given.output_length)?,
        at: time("timestamp", given.timestamp, Unit::Milliseconds)?,
        delay: time("delay", given.delay, Unit::Milliseconds)?,
    })
}

/// A JSON text on its own.
fn raw(text: &[u8]) -> Result<Box<RawValue>, Bad> {
    serde_json::from_slice(text).map_err(|error| not_json(text, &error))
}

#[derive(Deserialize)]
struct Several<'a> {
    #[serde(borrow)]
    session_id: Raw<'a>,
    #[serde(borrow)]
    turns: Option<Vec<&'a RawValue>>,
}

/// One line of `multi_turn`.
pub(super) fn multi_turn(line: &[u8]) -> Result<Entry, Bad> {
    let given: Several = object(line)?;
    let turns = given.turns.unwrap_or_default();
    if turns.is_empty() {
        return Err(Fault::missing("turns", "a list of at least one turn"));
    }
    let mut entry = Entry {
        session: text("session_id", given.session_id)?,
        ..Entry::default()
    };
    for (place, raw) in turns.iter().enumerate() {
        let read = object::<Single>(raw.get().as_bytes())
            .and_then(|single| turn(&single, raw.get().as_bytes()));
        entry.turns.push(read.map_err(|mut fault| {
            fault.field = format!("turns[{place}].{}", fault.field);
            fault
        })?);
    }
    Ok(entry)
}

#[derive(Deserialize)]
struct Chat<'a> {
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    session_id: Raw<'a>,
    #[serde(borrow)]
    max_tokens: Raw<'a>,
    #[serde(borrow)]
    max_completion_tokens: Raw<'a>,
    #[serde(borrow)]
    output_length: Raw<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Raw<'a>,
}

/// One line with `messages`.
pub(super) fn messages(line: &[u8]) -> Result<Entry, Bad> {
    let given: Chat = object(line)?;
    let messages = given
        .messages
        .ok_or_else(|| Fault::missing("messages", "a list of messages"))?;
    let wanted = "a list of messages, each with a `role`";
    let list: Vec<Message> = serde_json::from_str(messages.get())
        .map_err(|_| Fault::new("messages", messages.get(), wanted))?;
    if list.is_empty() || list.iter().any(|message| message.role.is_none()) {
        return Err(Fault::new("messages", messages.get(), wanted));
    }
    let mut output_tokens = length("output_length", given.output_length)?;
    for (name, raw) in [
        ("max_completion_tokens", given.max_completion_tokens),
        ("max_tokens", given.max_tokens),
    ] {
        output_tokens = match output_tokens {
            None => length(name, raw)?,
            some => some,
        };
    }
    Ok(Entry {
        session: text("session_id", given.session_id)?,
        system: None,
        turns: vec![Turn {
            output_tokens,
            ..sent(Content::Messages {
                messages: messages.to_owned(),
                tools: given.tools.map(RawValue::to_owned),
            })
        }],
    })
}

/// One line that is a whole request body.
pub(super) fn payload(line: &[u8]) -> Result<Entry, Bad> {
    Ok(Entry {
        turns: vec![body("row", raw(line)?)?],
        ..Entry::default()
    })
}

#[derive(Deserialize)]
struct Session<'a> {
    #[serde(borrow)]
    session_id: Raw<'a>,
    #[serde(borrow)]
    payloads: Option<Vec<&'a RawValue>>,
}

/// One session of `inputs.json`.
pub(super) fn session(value: &[u8]) -> Result<Entry, Bad> {
    let given: Session = object(value)?;
    let payloads = given.payloads.unwrap_or_default();
    if payloads.is_empty() {
        return Err(Fault::missing(
            "payloads",
            "a list of at least one request body",
        ));
    }
    let mut entry = Entry {
        session: text("session_id", given.session_id)?,
        ..Entry::default()
    };
    for (place, raw) in payloads.into_iter().enumerate() {
        entry
            .turns
            .push(body(&format!("payloads[{place}]"), raw.to_owned())?);
    }
    Ok(entry)
}

fn body(name: &str, raw: Box<RawValue>) -> Result<Turn, Bad> {
    if raw.get().starts_with('{') {
        Ok(sent(Content::Payload(raw)))
    } else {
        Err(Fault::new(name, raw.get(), "a JSON object"))
    }
}

fn sent(content: Content) -> Turn {
    Turn {
        content,
        reply: None,
        output_tokens: None,
        at: None,
        delay: None,
    }
}
