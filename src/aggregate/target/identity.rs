//! What a server is: its version, its models, its settings; and what of that changed.

use std::collections::{BTreeSet, VecDeque};

use crate::measurement::MarkKind;
use crate::measurement::server::ServerInfo;

/// Earlier values that are no news: replicas of several kinds may answer in turn while one
/// release takes the place of another.
const REMEMBERED: usize = 4;
/// Settings or models that a text names.
const NAMED: usize = 3;

type Pairs = Vec<(Box<str>, Box<str>)>;

/// The last values of one thing.
#[derive(Debug, Clone)]
struct Known<T>(VecDeque<T>);

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: PartialEq> Known<T> {
    /// Takes the newest value; the one before it if that is news.
    fn take(&mut self, value: T) -> Option<&T> {
        if let Some(at) = self.0.iter().position(|known| *known == value) {
            let known = self.0.remove(at)?;
            self.0.push_back(known);
            return None;
        }
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(value);
        self.0.iter().rev().nth(1)
    }
}

/// What one target was so far.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    version: Known<Box<str>>,
    models: Known<Vec<Box<str>>>,
    flags: Known<Pairs>,
}

/// A change, and what it is from and to.
pub type Changed = (MarkKind, String);

impl Identity {
    /// Takes the version that the server says it is of.
    pub fn version(&mut self, version: &str) -> Option<Changed> {
        let before = self.version.take(version.into())?;
        Some((MarkKind::Version, format!("{before} → {version}")))
    }

    /// Takes the names of the models that it lists, in any order. An empty list is no news: some
    /// list a model only once it is loaded.
    pub fn models(&mut self, mut models: Vec<Box<str>>) -> Option<Changed> {
        models.sort_unstable();
        models.dedup();
        if models.is_empty() {
            return None;
        }
        let now = models.clone();
        let before = self.models.take(models)?;
        let text = format!("{} → {}", names(before), names(&now));
        Some((MarkKind::Models, text))
    }

    /// Takes what its page says that does not change while it runs.
    pub fn flags(&mut self, info: &ServerInfo) -> Option<Changed> {
        if info.flags.is_empty() {
            return None;
        }
        let before = self.flags.take(info.flags.clone())?;
        let text = differences(before, &info.flags);
        Some((MarkKind::Flags, text))
    }
}

fn names(models: &[Box<str>]) -> String {
    let all: Vec<&str> = models.iter().map(|model| &**model).collect();
    first_few(&all)
}

fn first_few<T: AsRef<str>>(all: &[T]) -> String {
    let few: Vec<&str> = all.iter().take(NAMED).map(AsRef::as_ref).collect();
    let text = few.join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// The settings that differ, each from what to what.
fn differences(before: &Pairs, now: &Pairs) -> String {
    let value = |pairs: &Pairs, name: &str| {
        let found = pairs.iter().find(|(of, _)| **of == *name);
        found.map_or_else(|| "none".to_owned(), |(_, value)| value.to_string())
    };
    let all: BTreeSet<&str> = before.iter().chain(now).map(|(name, _)| &**name).collect();
    let changed: Vec<String> = all
        .into_iter()
        .map(|name| (name, value(before, name), value(now, name)))
        .filter(|(_, before, now)| before != now)
        .map(|(name, before, now)| format!("{name}: {before} → {now}"))
        .collect();
    first_few(&changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_first_seen_is_no_change_and_what_comes_back_neither() {
        let mut identity = Identity::default();
        assert_eq!(identity.version("0.11.0"), None);
        assert_eq!(identity.version("0.11.0"), None);
        let change = |text: &str| Some((MarkKind::Version, text.to_owned()));
        assert_eq!(identity.version("0.11.1"), change("0.11.0 → 0.11.1"));
        // Replicas of both answer in turn.
        for version in ["0.11.0", "0.11.1", "0.11.0", "0.11.1"] {
            assert_eq!(identity.version(version), None);
        }
        assert_eq!(identity.version("0.12.0"), change("0.11.1 → 0.12.0"));
    }

    #[test]
    fn models_are_a_set_and_an_empty_list_says_nothing() {
        let mut identity = Identity::default();
        let list = |names: &[&str]| names.iter().map(|name| (*name).into()).collect::<Vec<_>>();
        assert_eq!(identity.models(list(&["b", "a"])), None);
        assert_eq!(identity.models(list(&[])), None);
        assert_eq!(identity.models(list(&["a", "b", "b"])), None);
        let many = identity.models(list(&["a", "b", "c", "d", "e"]));
        let text = "a, b → a, b, c and 2 more".to_owned();
        assert_eq!(many, Some((MarkKind::Models, text)));
    }

    #[test]
    fn settings_are_told_apart_one_by_one() {
        let info = |pairs: &[(&str, &str)]| ServerInfo {
            flags: pairs
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            ..ServerInfo::default()
        };
        let mut identity = Identity::default();
        let first = info(&[("block_size", "16"), ("cache_dtype", "auto"), ("gone", "x")]);
        assert_eq!(identity.flags(&first), None);
        assert_eq!(
            identity.flags(&ServerInfo::default()),
            None,
            "not on the page"
        );
        let second = info(&[("block_size", "32"), ("cache_dtype", "auto"), ("new", "y")]);
        let text = "block_size: 16 → 32, gone: x → none, new: none → y".to_owned();
        assert_eq!(identity.flags(&second), Some((MarkKind::Flags, text)));
    }
}
