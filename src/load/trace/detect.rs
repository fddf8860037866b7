//! Which format a file has, told from its first bytes, with the reason in words.
//!
//! Only the head is looked at, and a row that is longer than the head is enough: keys are taken
//! as far as they can be read. Where two formats have the same fields and differ in unit, the
//! reason says which was taken and how to say otherwise; nothing is guessed silently.

use super::format::Format;

/// A format and why it was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    /// The format.
    pub format: Format,
    /// Why, for a person.
    pub reason: String,
}

/// One way to know a format from the keys of its first row.
struct Rule {
    format: Format,
    /// All of these are there,
    all: &'static [&'static str],
    /// and one of these, if there are any here.
    any: &'static [&'static str],
    /// What is added to the reason.
    note: &'static str,
}

const fn rule(format: Format, all: &'static [&'static str], any: &'static [&'static str]) -> Rule {
    Rule {
        format,
        all,
        any,
        note: "",
    }
}

/// For rows that are JSON objects; the first that fits.
const OBJECTS: &[Rule] = &[
    rule(Format::SageMaker, &["captureData", "eventMetadata"], &[]),
    rule(Format::Weka, &["block_size", "hash_id_scope"], &[]),
    rule(Format::Weka, &["block_size", "requests"], &[]),
    rule(
        Format::TraceLab,
        &["round_index", "input_tokens_total"],
        &[],
    ),
    rule(Format::TraceLab, &["timing_events", "prefix_tokens"], &[]),
    rule(
        Format::Bailian,
        &["chat_id", "timestamp", "input_length"],
        &[],
    ),
    rule(Format::Mooncake, &["input_length", "hash_ids"], &[]),
    Rule {
        format: Format::Minimal,
        all: &["timestamp", "input_length", "output_length"],
        any: &[],
        note: "; times are taken as seconds, since there are no hash_ids; if they are milliseconds, the format is `mooncake_trace`",
    },
    rule(
        Format::Mooncake,
        &["input_length"],
        &["session_id", "delay", "timestamp"],
    ),
    rule(Format::Mooncake, &["text_input"], &[]),
    rule(Format::Mooncake, &["payload"], &[]),
    rule(
        Format::Mooncake,
        &["messages"],
        &["timestamp", "delay", "output_length"],
    ),
    rule(Format::ShareGpt, &[], &["conversations", "conversation"]),
    rule(Format::MultiTurn, &["turns"], &[]),
    rule(Format::Inputs, &["data"], &[]),
    rule(Format::Messages, &["messages"], &[]),
    rule(Format::SingleTurn, &[], SINGLE),
    rule(
        Format::RawPayload,
        &["model"],
        &["prompt", "input", "inputs", "query"],
    ),
];

/// What a prompt of one turn can be given as.
const SINGLE: &[&str] = &[
    "text", "texts", "image", "images", "audio", "audios", "video", "videos",
];

/// For the header of a CSV file.
const HEADERS: &[Rule] = &[
    rule(
        Format::BurstGpt,
        &["Timestamp", "Request tokens", "Response tokens"],
        &[],
    ),
    rule(
        Format::Azure,
        &["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
        &[],
    ),
];

impl Format {
    /// The format of a file that begins with `head`, unpacked.
    ///
    /// # Errors
    /// What was found instead, in words, if it is none of them.
    pub fn detect(head: &[u8]) -> Result<Detected, String> {
        if head.starts_with(b"PAR1") {
            return Ok(Detected {
                format: Self::Baseten,
                reason: "a Parquet file".to_owned(),
            });
        }
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let head = head.trim_ascii_start();
        match head.first() {
            None => Err("the file is empty".to_owned()),
            Some(b'{') => by_rules(OBJECTS, &keys(head), "first row has"),
            Some(b'[') => {
                let element = head[1..].trim_ascii_start();
                by_rules(
                    OBJECTS,
                    &keys(element),
                    "a JSON array whose first element has",
                )
            }
            Some(_) => {
                let line = head.split(|byte| *byte == b'\n').next().unwrap_or(head);
                let line = String::from_utf8_lossy(line);
                let columns: Vec<String> = line
                    .split(',')
                    .map(|column| column.trim().trim_matches('"').to_owned())
                    .collect();
                by_rules(HEADERS, &columns, "header has the columns")
            }
        }
    }
}

fn by_rules(rules: &[Rule], keys: &[String], intro: &str) -> Result<Detected, String> {
    let has = |name: &&&str| keys.iter().any(|key| key == **name);
    for rule in rules {
        if !rule.all.iter().all(|name| has(&name)) {
            continue;
        }
        let one = rule.any.iter().find(has);
        if one.is_none() && !rule.any.is_empty() {
            continue;
        }
        let named: Vec<&str> = rule.all.iter().chain(one).copied().collect();
        return Ok(Detected {
            format: rule.format,
            reason: format!("{intro} {}{}", named.join(", "), rule.note),
        });
    }
    let mut shown: Vec<&str> = keys.iter().take(8).map(String::as_str).collect();
    if keys.len() > shown.len() {
        shown.push("…");
    }
    if shown.is_empty() {
        return Err("no row, array or header was found at its beginning".to_owned());
    }
    let shown: String = shown
        .join(", ")
        .chars()
        .take(200)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    Err(format!("{intro} {shown}, which fits no format"))
}

/// Most keys that are looked at.
const MOST_KEYS: usize = 256;

/// Keys of the outermost object that `text` begins with, as far as it goes.
fn keys(text: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut depth = 0_u32;
    let mut expects_key = false;
    let mut at = 0;
    while at < text.len() && found.len() < MOST_KEYS {
        match text[at] {
            b'{' => {
                depth += 1;
                expects_key = depth == 1;
            }
            b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
            b',' => expects_key = depth == 1,
            b'"' => {
                let Some(length) = string_length(&text[at + 1..]) else {
                    break;
                };
                if expects_key && depth == 1 {
                    let key = &text[at + 1..at + 1 + length];
                    found.push(String::from_utf8_lossy(key).into_owned());
                    expects_key = false;
                }
                at += length + 1;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Bytes up to the closing quote.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, format: Format, reason: &str) {
        let found = Format::detect(head.as_bytes()).expect("it is one of them");
        assert_eq!((found.format, found.reason.as_str()), (format, reason));
    }

    #[test]
    fn traces_are_told_by_their_fields_with_the_reason() {
        check(
            r#"{"timestamp": 0, "input_length": 6755, "output_length": 500, "hash_ids": [0, 1, 2, 3"#,
            Format::Mooncake,
            "first row has input_length, hash_ids",
        );
        check(
            r#"{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 521, "output_length": 132, "type": "text", "turn": 1, "hash_ids": [8,"#,
            Format::Bailian,
            "first row has chat_id, timestamp, input_length",
        );
        check(
            r#"{"timestamp":0.5,"input_length":10,"output_length":5}"#,
            Format::Minimal,
            "first row has timestamp, input_length, output_length; times are taken as seconds, since there are no hash_ids; if they are milliseconds, the format is `mooncake_trace`",
        );
        check(
            "\u{feff}Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n",
            Format::BurstGpt,
            "header has the columns Timestamp, Request tokens, Response tokens",
        );
        check(
            "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n",
            Format::Azure,
            "header has the columns TIMESTAMP, ContextTokens, GeneratedTokens",
        );
        check("PAR1\u{15}\u{4}", Format::Baseten, "a Parquet file");
        check(
            r#"{"captureData":{"endpointInput":{}},"eventMetadata":{}}"#,
            Format::SageMaker,
            "first row has captureData, eventMetadata",
        );
        check(
            "{\n  \"id\": \"a\",\n  \"models\": [\"m\"],\n  \"block_size\": 64,\n  \"hash_id_scope\": \"local\",",
            Format::Weka,
            "first row has block_size, hash_id_scope",
        );
        check(
            r#"{"session_id":"claude:1","round_index":0,"input_tokens_total":5}"#,
            Format::TraceLab,
            "first row has round_index, input_tokens_total",
        );
    }

    #[test]
    fn prompts_are_told_by_their_fields_with_the_reason() {
        check(
            r#"[{"id":"a","conversations":[{"from":"human","value":"{\"input_length\":1,\"hash_ids\":[]}"}]}]"#,
            Format::ShareGpt,
            "a JSON array whose first element has conversations",
        );
        check(
            r#"{"model":"m","messages":[{"role":"user","content":"a"}]}"#,
            Format::Messages,
            "first row has messages",
        );
        check(
            r#"{"messages":[],"timestamp":5}"#,
            Format::Mooncake,
            "first row has messages, timestamp",
        );
        check(r#"{"text":"a"}"#, Format::SingleTurn, "first row has text");
        check(
            r#"{"turns":[{"text":"a"}]}"#,
            Format::MultiTurn,
            "first row has turns",
        );
        check(
            r#"{"data":[{"session_id":"a"}]}"#,
            Format::Inputs,
            "first row has data",
        );
        check(
            r#"{"model":"m","prompt":"a"}"#,
            Format::RawPayload,
            "first row has model, prompt",
        );
    }

    #[test]
    fn what_fits_nothing_is_said() {
        let told = |head: &[u8]| Format::detect(head).expect_err("none of them");
        assert_eq!(told(b" \n"), "the file is empty");
        assert_eq!(
            told(b"{\"a\":{\"messages\":1},\"b\":2}"),
            "first row has a, b, which fits no format"
        );
        assert_eq!(
            told(b"time,tokens\n1,2\n"),
            "header has the columns time, tokens, which fits no format"
        );
        assert_eq!(
            told(b"[1,2]"),
            "no row, array or header was found at its beginning"
        );
        assert_eq!(
            told(b"[[{\"turns\":1}]]"),
            "no row, array or header was found at its beginning"
        );
        assert_eq!(
            told(b"\xff\xfe\x01"),
            "header has the columns \u{fffd}\u{fffd} , which fits no format"
        );
    }
}
