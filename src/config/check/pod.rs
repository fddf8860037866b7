//! The key `pod_info` of a target: a directory, or a section.

use super::super::PodInfoConfig;
use super::super::diagnostic::Problem;
use super::super::given::{Given, Refusal};
use super::super::keys;
use super::super::reader::{Reader, Section};
use super::items;

/// More keys than anyone writes an image under.
const MOST_KEYS: usize = 32;

/// Reads `pod_info`; `None` if it is not there or wrong. Whether the directory is there shows
/// while it runs: a configuration is also checked elsewhere.
pub(super) fn pod_info<'a>(reader: &mut Reader<'a>, target: &Section<'a>) -> Option<PodInfoConfig> {
    let node = target.get("pod_info")?;
    if node.value.as_dict().is_none() {
        let dir = reader.optional(target, "pod_info", dir)?;
        return Some(PodInfoConfig::at(dir));
    }
    let section = reader.section(node, &keys::POD_INFO)?;
    let dir = reader.required(&section, "dir", dir);
    let keys = section
        .get("image_keys")
        .map(|_| image_keys(reader, &section));
    let mut read = PodInfoConfig::at(dir?);
    if let Some(keys) = keys {
        read.image_keys = keys;
    }
    Some(read)
}

fn image_keys<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Vec<String> {
    let nodes = items(reader, section, "image_keys").unwrap_or_default();
    if let Some(over) = nodes.get(MOST_KEYS) {
        let refusal = Refusal::new(Problem::OutOfRange).wanted(format!("at most {MOST_KEYS} keys"));
        reader.refuse(over, &refusal);
    }
    let mut keys: Vec<String> = Vec::new();
    for node in nodes.iter().take(MOST_KEYS) {
        match reader.item(section, (node, "image_keys"), image_key) {
            Some(key) if keys.contains(&key) => {
                let refusal = Refusal::new(Problem::Duplicate).wanted("each key once");
                reader.refuse(node, &refusal);
            }
            Some(key) => keys.push(key),
            None => {}
        }
    }
    keys
}

fn dir(given: Given<'_>) -> Result<String, Refusal> {
    let text = given.text()?;
    if text.is_empty() || text.contains('\0') {
        return Err(Refusal::new(Problem::NotUnderstood));
    }
    Ok(text.to_owned())
}

/// A key as Kubernetes has it: up to 63 letters, digits, `.`, `_` or `-`, perhaps behind a domain
/// of up to 253 and a `/`.
fn image_key(given: Given<'_>) -> Result<String, Refusal> {
    let text = given.text()?;
    let is_good = |part: &str, most: usize| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        (1..=most).contains(&part.len()) && part.bytes().all(good)
    };
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if is_good(name, 63) && prefix.is_none_or(|prefix| is_good(prefix, 253)) {
        return Ok(text.to_owned());
    }
    Err(Refusal::new(Problem::NotUnderstood)
        .wanted("the key of a label or an annotation, as in `example.com/image` or `image`"))
}
