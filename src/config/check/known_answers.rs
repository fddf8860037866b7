//! Questions of which the answer is known.

use super::super::diagnostic::Problem;
use super::super::given::Refusal;
use super::super::keys;
use super::super::reader::{Reader, Section};
use super::super::{CacheModes, KnownAnswers, PromptSource, WorkloadConfig};
use super::small;
use super::workload::MOST_TOKENS;
use crate::measurement::{Api, CacheMode, KnownKind};

/// The workload of questions that `workload.known_answers` describes.
pub(super) fn known_answers<'a>(
    reader: &mut Reader<'a>,
    workload: &Section<'a>,
) -> Option<WorkloadConfig> {
    for key in ["synthetic", "file", "cache", "cache_salt"] {
        if let Some(node) = workload.get(key) {
            let hint = "a workload has one of `synthetic`, `file` and `known_answers`, and `cache` and `cache_salt` go with the first";
            reader.refuse(&node, &Refusal::new(Problem::Conflict).hint(hint));
        }
    }
    let section = reader.subsection(workload, "known_answers", &keys::KNOWN_ANSWERS)?;
    let default = KnownAnswers::default();
    let kinds = match section.get("kinds") {
        Some(_) => kinds(reader, &section)?,
        None => default.kinds,
    };
    let output_tokens = reader.optional(&section, "output_tokens", |given| {
        given.whole(1..=MOST_TOKENS)
    });
    Some(WorkloadConfig {
        source: PromptSource::Known(KnownAnswers {
            kinds,
            output_tokens: output_tokens.map_or(default.output_tokens, small),
        }),
        cache: CacheModes::Only(CacheMode::Cold),
        cache_salt: false,
    })
}

/// The kinds in the list `kinds`.
fn kinds<'a>(reader: &mut Reader<'a>, section: &Section<'a>) -> Option<Vec<KnownKind>> {
    let nodes = reader.list(section, "kinds")?;
    let mut kinds: Vec<KnownKind> = Vec::new();
    for node in &nodes {
        let kind = reader.item(section, (node, "kinds"), |given| {
            let kind = given.word(&KnownKind::ALL.map(|kind| (kind.name(), kind)), &[])?;
            if kinds.contains(&kind) {
                return Err(Refusal::new(Problem::Duplicate).wanted("each kind once"));
            }
            Ok(kind)
        });
        kinds.extend(kind);
    }
    if nodes.is_empty() {
        let refusal = Refusal::new(Problem::Missing).wanted("at least one kind");
        reader.refuse(&section.get("kinds")?, &refusal);
    }
    (!kinds.is_empty() && kinds.len() == nodes.len()).then_some(kinds)
}

/// Why a question cannot be put to the target `name`, which speaks `api`.
pub(super) fn unanswered(name: &str, api: Api) -> Option<Refusal> {
    let why = match api {
        Api::Raw => "which sends a body of your own",
        api if !api.makes_tokens() => "which answers with no text",
        _ => return None,
    };
    let wanted = format!(
        "another workload, since `{name}` speaks `{}`, {why}",
        api.name()
    );
    Some(Refusal::new(Problem::Conflict).wanted(wanted))
}
