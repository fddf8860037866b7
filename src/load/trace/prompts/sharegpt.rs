//! `ShareGPT`: conversations as they were collected, dirt included.
//!
//! Roles have many names, and an unknown one is taken as the user's. Blank messages are left out.
//! A conversation may be a later piece of one and begin with an answer, which is left out. One
//! without any question that was answered has nothing to measure and is passed over. All of this
//! is noted with its number.

use serde::Deserialize;

use super::{Content, Entry, Notes, Turn, note};
use crate::load::trace::traces::Bad;
use crate::load::trace::traces::fields::{Raw, object, text};

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    id: Raw<'a>,
    #[serde(borrow, alias = "conversation")]
    conversations: Option<Vec<Message<'a>>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, alias = "role")]
    from: Raw<'a>,
    #[serde(borrow, alias = "content")]
    value: Raw<'a>,
}

/// Who speaks.
#[derive(Clone, Copy)]
enum Role {
    User,
    Model,
    System,
    Unknown,
}

impl Role {
    fn of(name: &str) -> Self {
        match name {
            "human" | "user" => Self::User,
            "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model" => Self::Model,
            "system" => Self::System,
            _ => Self::Unknown,
        }
    }
}

/// One conversation; `None` if nothing in it was asked and answered.
pub(super) fn conversation(line: &[u8], notes: &mut Notes) -> Result<Option<Entry>, Bad> {
    let given: Row = object(line)?;
    let mut entry = Entry {
        session: text("id", given.id)?,
        ..Entry::default()
    };
    let messages = given.conversations.unwrap_or_default();
    if messages.is_empty() {
        note(notes, "conversations without a message, passed over");
        return Ok(None);
    }
    for (place, message) in messages.iter().enumerate() {
        let at = format!("conversations[{place}].value");
        let said = text(&at, message.value)?.unwrap_or_default();
        if said.trim().is_empty() {
            note(notes, "blank messages, left out");
            continue;
        }
        let from = text("from", message.from)?.unwrap_or_default();
        add(&mut entry, Role::of(&from), said, notes);
    }
    if entry.turns.iter().all(|turn| turn.reply.is_none()) {
        note(
            notes,
            "conversations without a question and its answer, passed over",
        );
        return Ok(None);
    }
    Ok(Some(entry))
}

fn add(entry: &mut Entry, role: Role, said: String, notes: &mut Notes) {
    match role {
        Role::System => match &mut entry.system {
            Some(system) => {
                system.push('\n');
                system.push_str(&said);
            }
            none => *none = Some(said),
        },
        Role::Model => match entry.turns.last_mut() {
            None => note(notes, "answers before the first question, left out"),
            Some(turn) => match &mut turn.reply {
                // An answer in two pieces.
                Some(reply) => {
                    reply.push('\n');
                    reply.push_str(&said);
                }
                none => *none = Some(said),
            },
        },
        Role::User | Role::Unknown => {
            if matches!(role, Role::Unknown) {
                note(notes, "messages of an unknown role, taken as the user's");
            }
            entry.turns.push(Turn {
                content: Content::Text(said),
                reply: None,
                output_tokens: None,
                at: None,
                delay: None,
            });
        }
    }
}
