//! Walks the merged tree against the key table, once, and notes every problem.
//!
//! A read that fails notes why and gives `None`; the walk goes on, so that all problems are
//! reported at once. A value is built only when all its parts are there.

use std::collections::BTreeMap;

use figment::value::{Dict, Value};

use super::diagnostic::{Diagnostic, Origin, Problem, quoted};
use super::given::{Given, Refusal};
use super::keys::Table;
use super::layers::Layers;

/// The walk: what is read, and what was found wrong so far.
pub(super) struct Reader<'a> {
    layers: &'a Layers,
    /// For secrets that stand in the environment.
    pub(super) environment: &'a BTreeMap<String, String>,
    found: Vec<Diagnostic>,
}

/// A value and its path.
#[derive(Clone)]
pub(super) struct Node<'a> {
    pub(super) path: String,
    pub(super) value: &'a Value,
}

/// A section whose keys were checked.
#[derive(Clone)]
pub(super) struct Section<'a> {
    pub(super) node: Node<'a>,
    dict: &'a Dict,
    table: &'static Table,
}

impl<'a> Section<'a> {
    /// The value of `key`, if it was set.
    pub(super) fn get(&self, key: &str) -> Option<Node<'a>> {
        Some(Node {
            path: join(&self.node.path, key),
            value: self.dict.get(key)?,
        })
    }
}

/// The path of `key` in the section at `path`.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(layers: &'a Layers, environment: &'a BTreeMap<String, String>) -> Self {
        Self {
            layers,
            environment,
            found: layers.found.clone(),
        }
    }

    /// Everything that was found wrong.
    pub(super) fn into_found(self) -> Vec<Diagnostic> {
        self.found
    }

    /// `node` as a section with the keys of `table`; other keys are noted.
    pub(super) fn section(&mut self, node: Node<'a>, table: &'static Table) -> Option<Section<'a>> {
        let Some(dict) = node.value.as_dict() else {
            let refusal = match table.at {
                "" => Refusal::new(Problem::WrongType),
                at => Refusal::new(Problem::WrongType).wanted(format!("the section `{at}`")),
            };
            self.refuse(&node, &refusal);
            return None;
        };
        for (key, value) in dict {
            self.check_key(&node.path, (key, value), table);
        }
        Some(Section { node, dict, table })
    }

    fn check_key(&mut self, path: &str, (key, value): (&str, &'a Value), table: &'static Table) {
        if table.keys.iter().any(|known| known.name == key) {
            return;
        }
        let (problem, hint) = if table.later.contains(&key) {
            (Problem::NotAvailable, None)
        } else {
            (Problem::UnknownKey, Some(table.hint(key)))
        };
        let path = join(path, key);
        self.found.push(Diagnostic {
            origin: self.layers.origin(&path, value),
            path: quoted(&path).trim_matches('`').to_owned(),
            problem,
            given: None,
            wanted: None,
            hint,
        });
    }

    /// The section under `key`, if it was set.
    pub(super) fn subsection(
        &mut self,
        section: &Section<'a>,
        key: &str,
        table: &'static Table,
    ) -> Option<Section<'a>> {
        let node = section.get(key)?;
        self.section(node, table)
    }

    /// The items of the list under `key`; none if it was not set or is no list.
    pub(super) fn list(&mut self, section: &Section<'a>, key: &str) -> Option<Vec<Node<'a>>> {
        let node = section.get(key)?;
        let Value::Array(_, items) = node.value else {
            let given = Given {
                value: node.value,
                untyped: false,
            };
            let refusal = Refusal::new(Problem::WrongType).wanted(section.table.wanted(key));
            self.refuse(
                &node,
                &match given.text() {
                    // Items of the lists at the top are sections.
                    Ok(text) if !section.table.at.is_empty() => {
                        refusal.hint(format!("write `[{}]`", quoted(text).trim_matches('`')))
                    }
                    _ => refusal,
                },
            );
            return None;
        };
        let item = |(index, value)| Node {
            path: format!("{}[{index}]", node.path),
            value,
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// The value of `key` read by `parse`, if it was set and is good.
    pub(super) fn optional<T>(
        &mut self,
        section: &Section<'a>,
        key: &str,
        parse: impl FnOnce(Given<'a>) -> Result<T, Refusal>,
    ) -> Option<T> {
        let node = section.get(key)?;
        let untyped = !matches!(
            self.layers.origin(&node.path, node.value),
            Origin::File { .. }
        );
        let given = Given {
            value: node.value,
            untyped,
        };
        match parse(given) {
            Ok(value) => Some(value),
            Err(mut refusal) => {
                let wanted = || section.table.wanted(key).to_owned();
                refusal.wanted = Some(refusal.wanted.unwrap_or_else(wanted));
                self.refuse(&node, &refusal);
                None
            }
        }
    }

    /// The item at `node` of the list under `key`, read by `parse`, if it is good.
    pub(super) fn item<T>(
        &mut self,
        section: &Section<'a>,
        (node, key): (&Node<'a>, &str),
        parse: impl FnOnce(Given<'a>) -> Result<T, Refusal>,
    ) -> Option<T> {
        let given = Given {
            value: node.value,
            untyped: false,
        };
        let mut refusal = match parse(given) {
            Ok(value) => return Some(value),
            Err(refusal) => refusal,
        };
        let wanted = || section.table.wanted(key).to_owned();
        refusal.wanted = Some(refusal.wanted.unwrap_or_else(wanted));
        self.refuse(node, &refusal);
        None
    }

    /// As [`Self::optional`], for a key that must be set.
    pub(super) fn required<T>(
        &mut self,
        section: &Section<'a>,
        key: &str,
        parse: impl FnOnce(Given<'a>) -> Result<T, Refusal>,
    ) -> Option<T> {
        self.require(section, key);
        self.optional(section, key, parse)
    }

    /// Notes `key` as missing if it was not set.
    pub(super) fn require(&mut self, section: &Section<'a>, key: &str) {
        if section.get(key).is_none() {
            self.missing(section, (key, section.table.wanted(key)));
        }
    }

    /// Notes `key`, a path below `section`, as missing.
    pub(super) fn missing(&mut self, section: &Section<'a>, (key, wanted): (&str, &str)) {
        let node = &section.node;
        self.found.push(Diagnostic {
            path: join(&node.path, key),
            origin: self.layers.section_origin(&node.path, node.value),
            problem: Problem::Missing,
            given: None,
            wanted: Some(wanted.to_owned()),
            hint: None,
        });
    }

    /// Notes `refusal` of `node`, with the value given.
    pub(super) fn refuse(&mut self, node: &Node<'a>, refusal: &Refusal) {
        let given = Given {
            value: node.value,
            untyped: false,
        };
        self.note(node, refusal, Some(given.shown()));
    }

    /// Notes `refusal` of `node` without its value, which is secret.
    pub(super) fn refuse_secret(&mut self, node: &Node<'a>, refusal: &Refusal) {
        self.note(node, refusal, None);
    }

    fn note(&mut self, node: &Node<'a>, refusal: &Refusal, given: Option<String>) {
        self.found.push(Diagnostic {
            path: node.path.clone(),
            origin: self.layers.origin(&node.path, node.value),
            problem: refusal.problem,
            given,
            wanted: refusal.wanted.clone(),
            hint: refusal.hint.clone(),
        });
    }
}
