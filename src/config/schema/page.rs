//! The rows of the page that describes the keys.

use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../docs/configuration.md");

/// The rows by the path of the key.
pub(super) type Described = BTreeMap<String, Row>;

/// What the page says about a key.
#[derive(Debug, Clone)]
pub(super) struct Row {
    default: String,
    /// Its meaning and its default, without links.
    pub(super) text: String,
}

impl Row {
    /// Whether the key must be there.
    pub(super) fn is_required(&self) -> bool {
        self.default == "required"
    }

    /// The keys that can stand instead of this one, where one of them must.
    pub(super) fn or_else(&self) -> Vec<&str> {
        let named = |text| -> Option<&str> {
            let rest = str::strip_prefix(text, "this")?;
            let rest = rest.strip_suffix("` is required")?;
            rest.strip_prefix([' ', ',']).is_some().then_some(rest)
        };
        // Between every two of the marks stands a name or what parts them.
        let parts = named(&self.default).unwrap_or_default().split('`');
        parts.skip(1).step_by(2).collect()
    }
}

/// All rows that name keys, one entry for each key.
pub(super) fn described() -> Described {
    let mut described = Described::new();
    for line in PAGE.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = line.trim_matches('|').splitn(3, '|').map(str::trim);
        let (Some(keys), Some(default), Some(meaning)) = (cells.next(), cells.next(), cells.next())
        else {
            continue;
        };
        let meaning = without_links(meaning);
        let text = match default {
            "" => meaning,
            default => format!("{meaning}\n\nDefault: {}", without_links(default)),
        };
        for key in keys.split(", ") {
            let row = Row {
                default: default.to_owned(),
                text: text.clone(),
            };
            described.insert(key.trim_matches('`').to_owned(), row);
        }
    }
    described
}

/// `[words](place)` as its words: the page is not at hand where this is read.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let (_, beyond) = after.split_once(')').unwrap_or((after, ""));
        match before.rsplit_once('[') {
            Some((plain, words)) => {
                out.push_str(plain);
                out.push_str(words);
            }
            None => out.push_str(before),
        }
        rest = beyond;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_as_their_words() {
        assert_eq!(without_links("plain `a[]`"), "plain `a[]`");
        assert_eq!(
            without_links("see [load.md](load.md#x), or [this](y) too"),
            "see load.md, or this too"
        );
    }

    #[test]
    fn a_row_is_one_entry_for_each_key_it_names() {
        let all = described();
        let seed = &all["seed"];
        assert!(!seed.is_required() && seed.text.ends_with("\n\nDefault: drawn"));
        for key in ["targets[].tls.cert", "targets[].tls.key"] {
            assert!(all[key].text.starts_with("files of our own PEM"), "{key}");
        }
        assert!(all["targets[].name"].is_required());
        assert_eq!(all["targets[].url"].or_else(), ["urls"]);
        assert_eq!(all["targets[].urls"].or_else(), [""; 0]);
        let file = &all["probes[].workload.file"];
        assert_eq!(file.or_else(), ["synthetic", "known_answers"]);
    }
}
