//! Definitions of tools that a model may call, in the form of `OpenAI` chat.
//!
//! Each has a name of its own, a description and two to four parameters, as real ones have; what
//! they would do, nobody does.

use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::draws::Draws;

/// Tools of one request: what `OpenAI` takes.
pub const MOST_TOOLS: u32 = 128;

const VERBS: [&str; 16] = [
    "get", "find", "list", "create", "update", "delete", "send", "read", "write", "check", "count",
    "open", "close", "share", "move", "book",
];
const THINGS: [&str; 16] = [
    "weather", "flight", "order", "invoice", "ticket", "message", "file", "user", "meeting",
    "hotel", "payment", "report", "product", "account", "address", "task",
];
/// Parameters: name, type, and what it is.
const PARAMETERS: [(&str, &str, &str); 12] = [
    ("id", "string", "Which one it is."),
    ("name", "string", "What it is called."),
    ("city", "string", "The city, as in `Paris`."),
    ("date", "string", "The day, as in `2030-01-31`."),
    ("limit", "integer", "How many at most."),
    ("page", "integer", "The page, from 1 on."),
    ("price", "number", "The price in the local currency."),
    ("urgent", "boolean", "Whether it is urgent."),
    ("language", "string", "The language of the answer."),
    ("owner", "string", "Whose it is."),
    ("comment", "string", "A note for people."),
    ("tags", "array", "Words to find it by."),
];
/// Parameters of a tool.
const FEWEST: u32 = 2;
const MOST: u32 = 4;

/// `count` definitions that `seed` decides, at most [`MOST_TOOLS`]: a JSON array.
///
/// # Panics
///
/// Never: what is written here is valid JSON.
#[must_use]
pub fn tool_definitions(count: u32, seed: u64) -> Arc<RawValue> {
    let mut draws = Draws::of(seed);
    let all = u32::try_from(VERBS.len() * THINGS.len()).expect("both lists are short");
    let first = draws.below(all);
    // An odd step goes through all pairs, whose number is a power of two, before one comes again.
    let step = draws.below(all / 2) * 2 + 1;
    let tools: Vec<Value> = (0..count.min(MOST_TOOLS))
        .map(|number| {
            let place = ((first + number * step) % all) as usize;
            let (verb, thing) = (VERBS[place / THINGS.len()], THINGS[place % THINGS.len()]);
            definition((verb, thing), &mut draws)
        })
        .collect();
    Arc::from(to_raw_value(&tools).expect("values are valid JSON"))
}

fn definition((verb, thing): (&str, &str), draws: &mut Draws) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let wanted = draws.within(FEWEST, MOST);
    let starts: [usize; PARAMETERS.len()] = std::array::from_fn(|index| index);
    let first = draws.pick(&starts);
    for number in 0..wanted {
        let place = first + number as usize;
        let (name, kind, what) = PARAMETERS[place % PARAMETERS.len()];
        let schema = if kind == "array" {
            json!({"type": kind, "items": {"type": "string"}, "description": what})
        } else {
            json!({"type": kind, "description": what})
        };
        properties.insert(name.to_owned(), schema);
        if number == 0 || draws.one_in(2) {
            required.push(name);
        }
    }
    json!({
        "type": "function",
        "function": {
            "name": format!("{verb}_{thing}"),
            "description": format!("{} a {thing} in the records of the customer.", capital(verb)),
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": required,
            },
        },
    })
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn parsed(count: u32, seed: u64) -> Vec<Value> {
        serde_json::from_str(tool_definitions(count, seed).get()).expect("it is an array")
    }

    #[test]
    fn tools_have_the_form_of_chat_and_names_of_their_own() {
        for seed in 0..50 {
            let tools = parsed(128, seed);
            let mut names = HashSet::new();
            for tool in &tools {
                assert_eq!(tool["type"], "function");
                let function = &tool["function"];
                let name = function["name"].as_str().expect("a name");
                let allowed = |c: char| c.is_ascii_lowercase() || c == '_';
                assert!(name.len() <= 64 && name.chars().all(allowed), "{name}");
                assert!(names.insert(name.to_owned()), "{name} twice");
                assert!(function["description"].is_string());
                let parameters = &function["parameters"];
                assert_eq!(parameters["type"], "object");
                let properties = parameters["properties"].as_object().expect("an object");
                assert!((2..=4).contains(&properties.len()), "{properties:?}");
                let required = parameters["required"].as_array().expect("a list");
                assert!(!required.is_empty());
                for name in required {
                    let name = name.as_str().expect("a name");
                    assert!(properties.contains_key(name), "{name}");
                }
            }
            assert_eq!(names.len(), 128);
        }
    }

    #[test]
    fn the_seed_decides_them_and_their_number_is_bounded() {
        assert_eq!(tool_definitions(7, 1).get(), tool_definitions(7, 1).get());
        assert_ne!(tool_definitions(7, 1).get(), tool_definitions(7, 2).get());
        assert_eq!(parsed(7, 1).len(), 7);
        assert_eq!(parsed(0, 1).len(), 0);
        assert_eq!(parsed(1_000, 1).len(), 128);
    }
}
