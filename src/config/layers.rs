//! The file, the environment and the flags, merged; and which of them each value came from.
//!
//! figment merges and keeps for each value the layer it came from. Lines of the file come from
//! a second parse with spans. Values of the environment and of flags are texts; the readers of
//! numbers take those too.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use figment::providers::{Format as _, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Error, Figment, Metadata, Profile, Provider, Source};
use toml::de::{DeTable, DeValue};

use super::diagnostic::{Diagnostic, Origin, Problem};
use super::reader::join;
use super::yaml::Yaml;
use super::{FlagOverride, Format, otel};

/// Variables with this prefix are keys; `__` stands between the parts of a path.
const PREFIX: &str = "TOKENCANARY__";
/// Sections that are lists.
const LISTS: [&str; 2] = ["targets", "probes"];

/// The merged tree, and where its values came from.
pub(super) struct Layers {
    figment: Figment,
    /// The merged tree: a dictionary.
    pub(super) root: Value,
    lines: HashMap<String, u64>,
    file: String,
    /// Problems of the layers themselves, found while merging.
    pub(super) found: Vec<Diagnostic>,
}

/// What the layers are made of.
pub(super) struct Sources<'a> {
    pub(super) text: &'a str,
    pub(super) format: Format,
    pub(super) file: &'a str,
    pub(super) environment: &'a BTreeMap<String, String>,
    pub(super) flags: &'a [FlagOverride],
}

impl Layers {
    /// Merges the layers. A syntax error is the only problem then.
    pub(super) fn merge(sources: &Sources<'_>) -> Result<Self, Box<Diagnostic>> {
        let (base, lines) = parse(sources)?;
        let mut found = Vec::new();
        let mut figment = base;
        for variable in otel::variables(sources.environment, has_otlp(&figment, sources)) {
            let headers = variable.keys.last() == Some(&"headers");
            let value = if headers {
                respelled(&figment, &variable)
            } else {
                variable.value
            };
            let origin = Origin::Environment(variable.name);
            figment = figment.merge(Overlay::new(&variable.keys, value, origin));
        }
        let mut seen: Vec<(String, &str)> = Vec::new();
        for (name, value) in sources.environment {
            let Some(rest) = name.strip_prefix(PREFIX) else {
                continue;
            };
            let rest = rest.to_ascii_lowercase();
            let keys: Vec<&str> = rest.split("__").collect();
            let origin = Origin::Environment(name.clone());
            if LISTS.contains(&keys[0]) {
                found.push(list_from_environment(&keys, origin));
            } else if let Some((_, other)) = seen.iter().find(|(path, _)| overlap(path, &rest)) {
                found.push(given_before(&keys, origin, other));
            } else {
                figment = figment.merge(Overlay::new(&keys, value.as_str(), origin));
                seen.push((rest, name));
            }
        }
        for flag in sources.flags {
            let keys: Vec<&str> = flag.path.split('.').collect();
            let origin = Origin::Flag(flag.flag.clone());
            figment = figment.merge(Overlay::new(&keys, flag.value.as_str(), origin));
        }
        let root = figment
            .find_value("")
            .map_err(|error| syntax(sources.file, (error.to_string(), None)))?;
        Ok(Self {
            figment,
            root,
            lines,
            file: sources.file.to_owned(),
            found,
        })
    }

    /// Where `value`, which stands at `path`, was written.
    pub(super) fn origin(&self, path: &str, value: &Value) -> Origin {
        let layer = self.figment.get_metadata(value.tag());
        match layer.and_then(|metadata| Some((metadata.name.as_ref(), metadata.source.as_ref()?))) {
            Some(("environment", Source::Custom(name))) => Origin::Environment(name.clone()),
            Some(("flag", Source::Custom(name))) => Origin::Flag(name.clone()),
            _ => self.in_file(path),
        }
    }

    /// Where the section at `path` was written: in the file, if it is there too.
    pub(super) fn section_origin(&self, path: &str, value: &Value) -> Origin {
        if self.lines.contains_key(path) {
            self.in_file(path)
        } else {
            self.origin(path, value)
        }
    }

    /// Where `path`, or the nearest section around it, stands in the file.
    pub(super) fn nearest(&self, path: &str) -> Origin {
        let mut path = path;
        while !self.lines.contains_key(path)
            && let Some((around, _)) = path.rsplit_once(['.', '['])
        {
            path = around;
        }
        self.in_file(path)
    }

    fn in_file(&self, path: &str) -> Origin {
        Origin::File {
            name: self.file.clone(),
            line: self.lines.get(path).copied(),
        }
    }
}

/// One value from the environment or a flag.
struct Overlay {
    dict: Dict,
    origin: Origin,
}

impl Overlay {
    fn new(keys: &[&str], value: impl Into<Value>, origin: Origin) -> Self {
        let mut tree = value.into();
        for key in keys.iter().skip(1).rev() {
            tree = Value::from(Dict::from([((*key).to_owned(), tree)]));
        }
        let first = keys.first().copied().unwrap_or_default();
        Self {
            dict: Dict::from([(first.to_owned(), tree)]),
            origin,
        }
    }
}

impl Provider for Overlay {
    fn metadata(&self) -> Metadata {
        match &self.origin {
            Origin::Environment(name) => Metadata::from("environment", name.as_str()),
            Origin::Flag(name) => Metadata::from("flag", name.as_str()),
            Origin::File { name, .. } => Metadata::named(name.clone()),
        }
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        Ok(Map::from([(Profile::Default, self.dict.clone())]))
    }
}

/// Whether the file or one of our own variables asks for OTLP.
fn has_otlp(file: &Figment, sources: &Sources<'_>) -> bool {
    let ours = format!("{PREFIX}export__otlp").to_ascii_lowercase();
    file.contains("export.otlp")
        || sources
            .environment
            .keys()
            .any(|name| name.to_ascii_lowercase().starts_with(&ours))
}

/// The headers of `variable`, each spelled as it is already: case does not matter in their names.
fn respelled(figment: &Figment, variable: &otel::Variable) -> Value {
    let known = figment.find_value(&variable.keys.join("."));
    let known: Vec<&String> = match &known {
        Ok(Value::Dict(_, known)) => known.keys().collect(),
        _ => Vec::new(),
    };
    let Value::Dict(_, given) = &variable.value else {
        return variable.value.clone();
    };
    let spelled = |name: &String| {
        let same = known.iter().find(|known| known.eq_ignore_ascii_case(name));
        same.map_or_else(|| name.clone(), |known| (*known).clone())
    };
    let headers: Dict = given
        .iter()
        .map(|(name, value)| (spelled(name), value.clone()))
        .collect();
    Value::from(headers)
}

fn list_from_environment(keys: &[&str], origin: Origin) -> Diagnostic {
    Diagnostic {
        path: keys.join("."),
        origin,
        problem: Problem::UnknownKey,
        given: None,
        wanted: Some("a key outside lists".to_owned()),
        hint: Some(format!("`{}` can be set in the file only", keys[0])),
    }
}

/// Whether two variables set the same key, or one sets a section that the other sets a key of.
fn overlap(a: &str, b: &str) -> bool {
    let within = |short: &str, long: &str| {
        long.strip_prefix(short)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("__"))
    };
    within(a, b) || within(b, a)
}

fn given_before(keys: &[&str], origin: Origin, other: &str) -> Diagnostic {
    Diagnostic {
        path: keys.join("."),
        origin,
        problem: Problem::Duplicate,
        given: None,
        wanted: Some("one variable for a key".to_owned()),
        hint: Some(format!("`{other}` sets it already")),
    }
}

/// The file as the lowest layer, with the lines of its keys.
fn parse(sources: &Sources<'_>) -> Result<(Figment, HashMap<String, u64>), Box<Diagnostic>> {
    let text = sources.text;
    match sources.format {
        Format::Yaml => match Yaml(text).syntax_error() {
            Some(error) => Err(syntax(sources.file, error)),
            None => Ok((Figment::from(Yaml(text)), Yaml(text).lines())),
        },
        Format::Toml => match DeTable::parse(text) {
            Err(error) => {
                let line = error.span().map(|span| TomlLines::new(text).of(&span));
                Err(syntax(sources.file, (error.message().to_owned(), line)))
            }
            Ok(table) => {
                let mut lines = TomlLines::new(text);
                lines.table(table.get_ref(), "");
                Ok((Figment::from(Toml::string(text)), lines.lines))
            }
        },
    }
}

fn syntax(file: &str, (message, line): (String, Option<u64>)) -> Box<Diagnostic> {
    Box::new(Diagnostic {
        path: String::new(),
        origin: Origin::File {
            name: file.to_owned(),
            line,
        },
        problem: Problem::Syntax,
        given: None,
        wanted: None,
        hint: Some(message.lines().next().unwrap_or_default().to_owned()),
    })
}

/// The lines of a TOML text, found while its tree is walked.
struct TomlLines {
    /// Offsets of all line ends.
    ends: Vec<usize>,
    lines: HashMap<String, u64>,
}

impl TomlLines {
    fn new(text: &str) -> Self {
        Self {
            ends: memchr::memchr_iter(b'\n', text.as_bytes()).collect(),
            lines: HashMap::new(),
        }
    }

    /// The line, from 1, in which `span` begins.
    fn of(&self, span: &Range<usize>) -> u64 {
        1 + self.ends.partition_point(|end| *end < span.start) as u64
    }

    fn table(&mut self, table: &DeTable<'_>, path: &str) {
        for (key, value) in table {
            let path = join(path, key.get_ref());
            let line = self.of(&key.span());
            self.value(value.get_ref(), &path);
            self.lines.insert(path, line);
        }
    }

    fn value(&mut self, value: &DeValue<'_>, path: &str) {
        match value {
            DeValue::Table(table) => self.table(table, path),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    let line = self.of(&item.span());
                    self.value(item.get_ref(), &path);
                    self.lines.insert(path, line);
                }
            }
            _ => {}
        }
    }
}
