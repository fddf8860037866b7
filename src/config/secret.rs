//! Secrets and header values: from the environment or a file, never shown.
//!
//! Nothing in here puts a value, or a key of a malformed secret, into a diagnostic.

use std::fs::File;
use std::io::Read as _;

use figment::value::{Dict, Value};

use super::Secret;
use super::diagnostic::{Problem, quoted};
use super::given::Refusal;
use super::keys::SECRET;
use super::reader::{Node, Reader, Section};

/// Longest secret, bytes.
const LONGEST: u64 = 64 * 1024;

/// Whether a secret may stand in the file itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Literal {
    Refused,
    Taken,
}

/// Headers that frame the message or are set by the client for each request.
const OWN_HEADERS: [&str; 10] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "traceparent",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
];

/// The secret under `key`, if it was set and can be read.
pub(super) fn secret<'a>(
    reader: &mut Reader<'a>,
    section: &Section<'a>,
    key: &str,
) -> Option<Secret> {
    let node = section.get(key)?;
    value(reader, &node, Literal::Refused)
}

/// Why the regular file at `path` cannot be read; `None` if it can.
pub(super) fn unreadable(path: &str) -> Option<Refusal> {
    let why = match regular(path.as_ref()) {
        Err(why) => why,
        Ok(()) => match File::open(path) {
            Err(error) => reason(&error),
            Ok(_) => return None,
        },
    };
    Some(Refusal::new(Problem::Unreadable).hint(why))
}

/// The headers under `headers`: names and values, which may be plain texts or secrets.
pub(super) fn headers<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Vec<(String, Secret)> {
    let Some(node) = section.get("headers") else {
        return Vec::new();
    };
    let Some(dict) = node.value.as_dict() else {
        let refusal =
            Refusal::new(Problem::WrongType).wanted("a section of header names and their values");
        reader.refuse_secret(&node, &refusal);
        return Vec::new();
    };
    let mut headers: Vec<(String, Secret)> = Vec::new();
    for (name, given) in dict {
        let node = Node {
            path: format!("{}.{}", node.path, quoted(name).trim_matches('`')),
            value: given,
        };
        if let Some(refusal) = bad_name(name, &headers) {
            reader.refuse_secret(&node, &refusal);
        } else if let Some(secret) = value(reader, &node, Literal::Taken) {
            headers.push((name.clone(), secret));
        }
    }
    headers
}

fn bad_name(name: &str, before: &[(String, Secret)]) -> Option<Refusal> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Some(Refusal::new(Problem::NotUnderstood).wanted("the name of a header"));
    }
    if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Some(
            Refusal::new(Problem::Conflict)
                .wanted("a header that is not set for each request anyway"),
        );
    }
    before
        .iter()
        .any(|(other, _)| other.eq_ignore_ascii_case(name))
        .then(|| Refusal::new(Problem::Duplicate).hint("case does not matter in header names"))
}

fn value<'a>(reader: &mut Reader<'a>, node: &Node<'a>, literal: Literal) -> Option<Secret> {
    let text = match (node.value, literal) {
        (Value::String(_, text), Literal::Taken) => Ok(text.clone()),
        (Value::Dict(_, dict), _) => from_elsewhere(reader, dict),
        (Value::String(..), Literal::Refused) => Err(Refusal::new(Problem::LiteralSecret)
            .wanted(SECRET)
            .hint("set an environment variable and name it here")),
        (Value::Num(..) | Value::Bool(..), Literal::Taken) => Err(Refusal::new(Problem::WrongType)
            .wanted("a text")
            .hint("put it in quotes")),
        _ => Err(Refusal::new(Problem::WrongType).wanted(SECRET)),
    };
    match text.and_then(sendable) {
        Ok(text) => Some(Secret::new(text)),
        Err(refusal) => {
            reader.refuse_secret(node, &refusal);
            None
        }
    }
}

fn sendable(text: String) -> Result<String, Refusal> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
        Ok(text)
    } else {
        Err(Refusal::new(Problem::NotUnderstood).wanted("printable ASCII on one line"))
    }
}

fn from_elsewhere(reader: &Reader<'_>, dict: &Dict) -> Result<String, Refusal> {
    let mut entries = dict.iter();
    let (Some((key, Value::String(_, name))), None) = (entries.next(), entries.next()) else {
        return Err(Refusal::new(Problem::WrongType).wanted(SECRET));
    };
    match key.as_str() {
        "env" => from_environment(reader, name),
        "file" => from_file(name),
        _ => Err(Refusal::new(Problem::WrongType).wanted(SECRET)),
    }
}

fn from_environment(reader: &Reader<'_>, name: &str) -> Result<String, Refusal> {
    let is_name = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if !is_name(name) {
        return Err(Refusal::new(Problem::NotUnderstood)
            .wanted("the name of an environment variable: letters, digits and `_`"));
    }
    let text = reader.environment.get(name).map(|text| text.trim());
    text.filter(|text| !text.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| {
            Refusal::new(Problem::Unreadable).wanted(format!(
                "the environment variable {} set, and not empty",
                quoted(name)
            ))
        })
}

fn from_file(path: &str) -> Result<String, Refusal> {
    let refuse = |why: String| {
        Refusal::new(Problem::Unreadable)
            .wanted(format!("a text file at {}", quoted(path)))
            .hint(why)
    };
    let text = read_text(path, LONGEST).map_err(refuse)?;
    let text = text.trim();
    if text.is_empty() {
        return Err(refuse("it is empty".to_owned()));
    }
    Ok(text.to_owned())
}

/// The text of the regular file at `path`, or why it cannot be read.
pub(super) fn read_text(path: impl AsRef<std::path::Path>, most: u64) -> Result<String, String> {
    let path = path.as_ref();
    regular(path)?;
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| reason(&error))?;
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| reason(&error))?;
    if bytes.len() as u64 > most {
        return Err(format!("it is larger than {most} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// A pipe or device would be waited for.
fn regular(path: &std::path::Path) -> Result<(), String> {
    let kind = std::fs::metadata(path).map_err(|error| reason(&error))?;
    if kind.is_dir() {
        return Err("it is a directory".to_owned());
    }
    if !kind.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    Ok(())
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string().to_lowercase(),
    }
}
