//! Good and bad sets of prompts of every format.

use std::fmt::Write as _;

use super::*;

/// Every entry in a line: `session (system): content → reply /tokens @at +delay; next turn`.
fn told(entry: &Entry) -> String {
    let mut out = entry.session.clone().unwrap_or_default();
    if let Some(system) = &entry.system {
        write!(out, " ({system})").expect("a string");
    }
    out += ":";
    for turn in &entry.turns {
        match &turn.content {
            Content::Text(text) => write!(out, " {text}"),
            Content::Media(raw) => write!(out, " media {raw}"),
            Content::Messages { messages, tools } => {
                let tools = tools.as_ref().map(ToString::to_string).unwrap_or_default();
                write!(out, " messages {messages}{tools}")
            }
            Content::Payload(raw) => write!(out, " payload {raw}"),
        }
        .expect("a string");
        if let Some(reply) = &turn.reply {
            write!(out, " → {reply}").expect("a string");
        }
        if let Some(tokens) = turn.output_tokens {
            write!(out, " /{tokens}").expect("a string");
        }
        for (sign, time) in [("@", turn.at), ("+", turn.delay)] {
            if let Some(time) = time {
                write!(out, " {sign}{}", time.as_secs_f64()).expect("a string");
            }
        }
        out += ";";
    }
    out
}

fn read(format: Format, text: &str) -> (Vec<String>, Notes) {
    let mut entries = Entries::open(format, 10_000, text.as_bytes(), "t").expect("prompts");
    let mut found = Vec::new();
    for entry in entries.by_ref() {
        found.push(match entry {
            Ok(entry) => told(&entry),
            Err(error) => error.to_string(),
        });
    }
    (found, entries.notes().clone())
}

#[track_caller]
fn check(format: Format, text: &str, wanted: &[&str]) {
    let (found, notes) = read(format, text);
    assert_eq!(found, wanted);
    assert_eq!(notes, Notes::new());
}

#[test]
fn sharegpt_is_read_with_its_dirt() {
    let text = r#"[
{"id":"a_0","conversations":[{"from":"human","value":"hi"},{"from":"gpt","value":"hello"},{"from":"human","value":"bye"}]},
{"id":"empty","conversations":[]},
{"id":"none"},
{"id":"one","conversations":[{"from":"human","value":"alone"}]},
{"id":"a_3","conversations":[{"from":"gpt","value":"mid"},{"from":"user","value":"q"},{"from":"chatgpt","value":"r"},{"from":"bing","value":"more"}]},
{"id":"s","conversations":[{"from":"system","value":"be brief"},{"from":"human","value":" \u200b"},{"from":"human","value":" \n"},{"from":"bard","value":"ok"}]},
{"id":"u","conversations":[{"from":"martian","value":"q\ud83d"},{"from":"gpt","value":"\ud83d\ude00"}]}
]"#;
    let (found, notes) = read(Format::ShareGpt, text);
    assert_eq!(
        found,
        [
            "a_0: hi → hello; bye;",
            "a_3: q → r\nmore;",
            "s (be brief):  \u{200b} → ok;",
            "u: q\u{fffd} → 😀;",
        ]
    );
    let wanted = [
        ("conversations without a message, passed over", 2),
        (
            "conversations without a question and its answer, passed over",
            1,
        ),
        ("answers before the first question, left out", 1),
        ("blank messages, left out", 1),
        ("messages of an unknown role, taken as the user's", 1),
        ("entries with half a surrogate pair, which was replaced", 1),
    ];
    assert_eq!(notes, wanted.into_iter().collect());
}

#[test]
fn a_bad_conversation_is_told_and_the_next_is_read() {
    let text = "[{\"conversations\":5},\n{\"id\":\"b\",\"conversations\":[{\"from\":\"human\",\"value\":{}},{\"from\":\"gpt\",\"value\":\"x\"}]},\n\
        {\"id\":\"c\",\"conversations\":[{\"from\":\"human\",\"value\":\"q\"},{\"from\":\"gpt\",\"value\":\"a\"}]},{\"id\":";
    let (found, _) = read(Format::ShareGpt, text);
    assert_eq!(
        found,
        [
            "t:1: row: `{\"conversations\":5}`\n  wanted: one JSON object; at column 18: invalid type: integer `5`, expected a sequence",
            "t:2: conversations[0].value: `{}`\n  wanted: a text",
            "c: q → a;",
            "t:3: row: `the end of the file`\n  wanted: the end of the entry that begins here",
        ]
    );
}

#[test]
fn single_turns_have_texts_media_and_times() {
    check(
        Format::SingleTurn,
        "{\"text\":\"hi\",\"output_length\":5,\"timestamp\":1500}\n\
         {\"text\":\"see\",\"image\":\"a.png\",\"session_id\":\"s\",\"delay\":20}\n\
         {\"texts\":[\"a\",\"b\"]}\n\
         {\"text\":\"a\",\"texts\":[\"b\"]}\n\
         {\"output_length\":5}\n\
         {\"text\":\"a\",\"output_length\":0}\n\
         {\"text\":5.5}\n",
        &[
            ": hi /5 @1.5;",
            "s: media {\"text\":\"see\",\"image\":\"a.png\",\"session_id\":\"s\",\"delay\":20} +0.02;",
            ": media {\"texts\":[\"a\",\"b\"]};",
            "t:4: texts: `[\"b\"]`\n  wanted: either `text` or `texts`",
            "t:5: text: `(nothing)`\n  wanted: a text, or texts, images, audios or videos",
            "t:6: output_length: `0`\n  wanted: a whole number of tokens, 1 or more",
            ": 5.5;",
        ],
    );
    check(
        Format::RandomPool,
        "{\"text\":\"hi\"}\n{\"text\":\"a\",\"delay\":5}\n",
        &[
            ": hi;",
            "t:2: delay: `5`\n  wanted: no times: prompts of a pool are drawn",
        ],
    );
}

#[test]
fn several_turns_stay_together() {
    check(
        Format::MultiTurn,
        "{\"session_id\":\"s\",\"turns\":[{\"text\":\"a\"},{\"text\":\"b\",\"delay\":1000}]}\n\
         {\"turns\":[]}\n{\"turns\":[{\"text\":\"a\"},{}]}\n",
        &[
            "s: a; b +1;",
            "t:2: turns: `(nothing)`\n  wanted: a list of at least one turn",
            "t:3: turns[1].text: `(nothing)`\n  wanted: a text, or texts, images, audios or videos",
        ],
    );
}

#[test]
fn lists_of_messages_stay_as_they_are() {
    check(
        Format::Messages,
        "{\"messages\":[{\"role\":\"user\",\"content\":\"é\"}],\"tools\":[{}],\"max_tokens\":9}\n\
         {\"messages\":[]}\n{\"messages\":[{\"content\":\"x\"}]}\n{\"messages\":\"x\"}\n",
        &[
            ": messages [{\"role\":\"user\",\"content\":\"é\"}][{}] /9;",
            "t:2: messages: `[]`\n  wanted: a list of messages, each with a `role`",
            "t:3: messages: `[{\"content\":\"x\"}]`\n  wanted: a list of messages, each with a `role`",
            "t:4: messages: `\"x\"`\n  wanted: a list of messages, each with a `role`",
        ],
    );
}

#[test]
fn bodies_are_kept_to_the_byte() {
    check(
        Format::RawPayload,
        "{\"model\":\"m\",  \"prompt\":\"a\"}\n5\n",
        &[
            ": payload {\"model\":\"m\",  \"prompt\":\"a\"};",
            "t:2: row: `5`\n  wanted: a JSON object",
        ],
    );
    check(
        Format::Inputs,
        "{\"data\": [\n {\"session_id\":\"x\",\"payloads\":[{\"a\":1},{\"b\": 2}]},\n {\"session_id\":\"y\",\"payloads\":[1]}\n]}",
        &[
            "x: payload {\"a\":1}; payload {\"b\": 2};",
            "t:3: payloads[0]: `1`\n  wanted: a JSON object",
        ],
    );
}

#[test]
fn long_entries_are_told() {
    let text = format!("[{{\"a\":\"{}\"}}]", "x".repeat(20_000));
    let (found, _) = read(Format::ShareGpt, &text);
    assert_eq!(
        found,
        ["t:1: row: `longer than 10000 bytes`\n  wanted: a shorter entry"]
    );
    assert!(Entries::open(Format::Mooncake, 10, &b""[..], "t").is_err());
}
