//! Who may import whom. The table is the authority; anything not listed is forbidden.

use super::source::{Source, is_word};

/// Room → what it may name beside itself. `docs/decisions/0002-imports.md` has the
/// reasons for the entries that are there for one need only.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("measurement", &["clock"]),
    ("config", &["measurement"]),
    ("telemetry", &["clock"]),
    ("load", &[]),
    ("load/trace", &[]),
    ("load/schedule", &["clock", "config", "load/trace"]),
    ("load/workload", &["config", "measurement", "load/trace"]),
    ("load/tap", &["config", "load/trace"]),
    ("transport", &["clock", "config"]),
    ("control", &["clock", "config", "measurement"]),
    (
        "client",
        &[
            "clock",
            "config",
            "transport",
            "load/workload",
            "measurement",
            "telemetry",
        ],
    ),
    (
        "scrape",
        &["clock", "config", "transport", "measurement", "telemetry"],
    ),
    ("aggregate", &["clock", "config", "measurement"]),
    ("analysis", &["clock", "config", "measurement", "aggregate"]),
    (
        "experiment",
        &["config", "measurement", "aggregate", "analysis"],
    ),
    (
        "store",
        &[
            "clock",
            "config",
            "measurement",
            "aggregate",
            "analysis",
            "load/trace",
        ],
    ),
    (
        "export",
        &[
            "clock",
            "config",
            "transport",
            "measurement",
            "aggregate",
            "analysis",
            "store",
            "telemetry",
        ],
    ),
    (
        "web",
        &[
            "clock",
            "config",
            "transport",
            "measurement",
            "aggregate",
            "analysis",
            "store",
            "telemetry",
            "export",
            "load/tap",
        ],
    ),
    (
        "report",
        &[
            "clock",
            "measurement",
            "aggregate",
            "analysis",
            "experiment",
        ],
    ),
    ("simulator", &["clock", "config", "telemetry"]),
    (
        "app",
        &[
            "clock",
            "measurement",
            "config",
            "telemetry",
            "load",
            "transport",
            "control",
            "client",
            "scrape",
            "aggregate",
            "analysis",
            "experiment",
            "store",
            "export",
            "web",
            "report",
            "simulator",
        ],
    ),
    (
        "cli",
        &[
            "config",
            "app",
            "report",
            "experiment",
            "analysis",
            "load/workload",
            "load/trace",
            "export/catalog",
            "export/boards",
            "export/kubernetes",
            "export/reference",
            "export/rules",
            "simulator",
            "measurement",
            "aggregate",
            "clock",
            "telemetry",
        ],
    ),
];

/// Every import of `source` that the table does not allow.
pub(super) fn violations(source: &Source) -> Vec<String> {
    if !source.path.starts_with("src/") || source.path == "src/lib.rs" {
        return Vec::new();
    }
    let module = source.module();
    let room = if module.is_empty() {
        "main".to_owned()
    } else {
        room_of(&module)
    };
    let allowed = match MAY_IMPORT.iter().find(|(name, _)| *name == room) {
        Some((_, allowed)) => *allowed,
        None if room == "main" => &["cli"],
        None => {
            return vec![format!(
                "{}:1: room `{room}` is not in the table",
                source.path
            )];
        }
    };
    paths(source, &module)
        .into_iter()
        .filter(|(_, path)| {
            let same = path.is_empty() || path.join("/") == "load" || room_of(path) == room;
            !same && !allowed.iter().any(|entry| is_below(&path.join("/"), entry))
        })
        .map(|(line, path)| {
            format!(
                "{}:{line}: `{room}` may not import `{}`",
                source.path,
                path.join("::")
            )
        })
        .collect()
}

fn room_of<S: AsRef<str>>(path: &[S]) -> String {
    let length = if path[0].as_ref() == "load" { 2 } else { 1 };
    let parts: Vec<&str> = path.iter().take(length).map(AsRef::as_ref).collect();
    parts.join("/")
}

fn is_below(path: &str, entry: &str) -> bool {
    path.strip_prefix(entry)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// All paths in non-test code that start at the crate root or climb with `super`, resolved from
/// the root, each with its line.
fn paths(source: &Source, module: &[&str]) -> Vec<(usize, Vec<String>)> {
    let code = &source.product;
    let mut found = Vec::new();
    for root in ["crate", "super", "tokencanary"] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].trim_end().as_bytes();
            let joined = before.ends_with(b"::") || at > 0 && is_word(code.as_bytes()[at - 1]);
            let rest = &code[at + root.len()..];
            if joined || !rest.starts_with("::") {
                continue;
            }
            let mut base: Vec<String> = Vec::new();
            if root == "super" {
                base = module.iter().map(|part| (*part).to_owned()).collect();
                base.pop();
            }
            let line = code[..at].matches('\n').count() + 1;
            let mut leaves = Vec::new();
            expand(&rest[2..], &base, &mut leaves);
            found.extend(leaves.into_iter().map(|path| (line, path)));
        }
    }
    found
}

/// Follows a path after its first `::` through groups; returns how much text it took.
fn expand(text: &str, base: &[String], leaves: &mut Vec<Vec<String>>) -> usize {
    let mut path = base.to_vec();
    let mut at = 0;
    loop {
        at += blanks(&text[at..]);
        let rest = &text[at..];
        if rest.starts_with('{') {
            return at + group(rest, &path, leaves);
        }
        let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
        match &rest[..length] {
            "super" => {
                path.pop();
            }
            "" | "self" => {}
            name => path.push(name.to_owned()),
        }
        at += length;
        if !text[at..].starts_with("::") {
            leaves.push(path);
            return at;
        }
        at += 2;
    }
}

fn group(text: &str, path: &[String], leaves: &mut Vec<Vec<String>>) -> usize {
    let mut at = 1;
    while at < text.len() {
        at += blanks(&text[at..]);
        match text.as_bytes().get(at) {
            Some(b'}') | None => return at + 1,
            Some(b',') => at += 1,
            Some(_) => {
                let taken = expand(&text[at..], path, leaves);
                let alias = text[at + taken..].find([',', '}']).unwrap_or(0);
                at += (taken + alias).max(1);
            }
        }
    }
    at
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(violations(&Source::new(path, text)), expected, "{text}");
    }

    #[test]
    fn an_import_against_the_arrow_is_found_wherever_it_hides() {
        check(
            "src/client/sse.rs",
            "use crate::clock::MonoTime;\nuse crate::app::App;",
            &["src/client/sse.rs:2: `client` may not import `app::App`"],
        );
        check(
            "src/simulator/wire/chat.rs",
            "fn f() {\n    crate::transport::connect();\n}",
            &["src/simulator/wire/chat.rs:2: `simulator` may not import `transport::connect`"],
        );
        check(
            "src/measurement/record.rs",
            "use crate::{clock::MonoTime,\n    config::{Config as C, Limits}};",
            &[
                "src/measurement/record.rs:1: `measurement` may not import `config::Config`",
                "src/measurement/record.rs:1: `measurement` may not import `config::Limits`",
            ],
        );
        check(
            "src/report/table.rs",
            "use super::super::export::catalog;",
            &["src/report/table.rs:1: `report` may not import `export::catalog`"],
        );
        check(
            "src/load/schedule/mod.rs",
            "use super::workload::Prompt;",
            &[
                "src/load/schedule/mod.rs:1: `load/schedule` may not import `load::workload::Prompt`",
            ],
        );
        check(
            "src/main.rs",
            "use tokencanary::{cli, config};",
            &["src/main.rs:1: `main` may not import `config`"],
        );
        check(
            "src/misc.rs",
            "",
            &["src/misc.rs:1: room `misc` is not in the table"],
        );
    }

    #[test]
    fn what_the_table_lists_is_fine() {
        check(
            "src/cli/generate.rs",
            "use crate::export::catalog::ALL;",
            &[],
        );
        check(
            "src/cli/generate.rs",
            "use crate::export::otlp::X;",
            &["src/cli/generate.rs:1: `cli` may not import `export::otlp::X`"],
        );
        check(
            "src/export/otlp/queue.rs",
            "use super::super::files; use super::X;",
            &[],
        );
        check(
            "src/app/build.rs",
            "use crate::load::{schedule::S, workload};",
            &[],
        );
        check("src/main.rs", "use tokencanary::cli;", &[]);
        check(
            "src/clock.rs",
            "#[cfg(test)]\nmod tests { use crate::app::App; }",
            &[],
        );
    }
}
