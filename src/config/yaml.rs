//! YAML as a figment provider, and the line of every key of a YAML text.
//!
//! Values and lines are read by two passes over the same text with the same limits, so what
//! one accepts the other does too. figment's own YAML support rests on an archived crate.

use std::collections::HashMap;
use std::fmt;

use figment::value::{Dict, Map};
use figment::{Error, Metadata, Profile, Provider};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Options, Spanned};

/// Deepest nesting; the key table needs seven levels.
const MAX_DEPTH: usize = 32;

/// A YAML text as a layer of configuration.
pub(super) struct Yaml<'a>(pub(super) &'a str);

impl Yaml<'_> {
    fn read(&self) -> Result<Dict, serde_saphyr::Error> {
        serde_saphyr::from_str_with_options(self.0, options())
    }

    /// The error of a text that is no YAML mapping: its message and line.
    pub(super) fn syntax_error(&self) -> Option<(String, Option<u64>)> {
        let error = self.read().err()?;
        let line = error
            .location()
            .map(|place| place.line())
            .filter(|line| *line > 0);
        Some((plain(&error.without_snippet().to_string()), line))
    }

    /// The line of each key and list item, from 1, by path.
    pub(super) fn lines(&self) -> HashMap<String, u64> {
        let mut lines = HashMap::new();
        let tree: Result<Spanned<Tree>, _> = serde_saphyr::from_str_with_options(self.0, options());
        if let Ok(tree) = tree {
            tree.value.collect("", &mut lines);
        }
        lines
    }
}

impl Provider for Yaml<'_> {
    fn metadata(&self) -> Metadata {
        Metadata::named("YAML")
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        let dict = self
            .read()
            .map_err(|error| Error::from(error.without_snippet().to_string()))?;
        Ok(Map::from([(Profile::Default, dict)]))
    }
}

fn options() -> Options {
    let budget = serde_saphyr::budget! { max_depth: MAX_DEPTH };
    serde_saphyr::options! {
        budget: budget,
        with_snippet: false,
        strict_booleans: true,
        // The key table refuses it, with its path.
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::PassThrough,
    }
}

/// The message without the place, which is told apart, and without any value.
fn plain(message: &str) -> String {
    if message.starts_with("invalid type") {
        return "a section of keys is wanted at the top".to_owned();
    }
    let line = message.lines().next().unwrap_or_default();
    let end = line.find(" at line ").unwrap_or(line.len());
    line[..end].trim_end_matches('.').to_owned()
}

/// The shape of a document, with the place of each key and item.
enum Tree {
    Map(Vec<(Spanned<String>, Tree)>),
    List(Vec<Spanned<Tree>>),
    Leaf,
}

impl Tree {
    fn collect(self, path: &str, lines: &mut HashMap<String, u64>) {
        match self {
            Self::Leaf => {}
            Self::Map(entries) => {
                for (key, child) in entries {
                    let path = super::reader::join(path, &key.value);
                    child.collect(&path, lines);
                    lines.insert(path, key.referenced.line());
                }
            }
            Self::List(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    lines.insert(path.clone(), item.referenced.line());
                    item.value.collect(&path, lines);
                }
            }
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

/// Scalars of every kind are leaves.
macro_rules! leaves {
    ($($method:ident: $type:ty),*) => {
        $(fn $method<E>(self, _: $type) -> Result<Tree, E> { Ok(Tree::Leaf) })*
    };
}

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    leaves!(visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64,
        visit_u128: u128, visit_f64: f64, visit_str: &str, visit_bytes: &[u8]);

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<Tree, D::Error> {
        IgnoredAny::deserialize(d).map(|_| Tree::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Tree::Map(entries))
    }
}
