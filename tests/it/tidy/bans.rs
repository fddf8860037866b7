//! What is forbidden by room, whatever is imported.

use super::source::{Source, is_word};

/// Code that may stand in some places only.
struct Ban {
    /// What is looked for, at word borders.
    needles: &'static [&'static str],
    /// Files or folders below `src` where it is allowed.
    allowed: &'static [&'static str],
    /// What the offender should read.
    reason: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        needles: &["async", "await"],
        allowed: &[
            "transport",
            "client",
            "scrape",
            "export",
            "web",
            "store",
            "simulator/wire",
            "app",
            "cli",
        ],
        reason: "pure rooms do not wait",
    },
    Ban {
        needles: &[
            "tokio::spawn",
            "task::spawn",
            ".spawn(",
            "spawn_local",
            "spawn_blocking",
            "thread::spawn",
        ],
        // Connection tasks of the simulator, connection drivers, the OTLP HTTP hook.
        allowed: &["app", "simulator/wire", "transport", "export/otlp"],
        reason: "tasks are started in `app`, where each has a name and an owner",
    },
    Ban {
        needles: &["channel(", "channel::<"],
        // The simulator is a server of its own, with queues of its own.
        allowed: &["app", "simulator/wire"],
        reason: "channels are made in `app`, bounded",
    },
    Ban {
        needles: &["unbounded_channel", "UnboundedSender", "unbounded"],
        allowed: &[],
        reason: "every queue is bounded",
    },
    Ban {
        needles: &["SystemTime::now"],
        allowed: &["clock"],
        reason: "wall time is read in `clock`, once, on the way out",
    },
    Ban {
        // Tokio's; clippy forbids the standard library's everywhere.
        needles: &["Instant::now"],
        allowed: &[
            "clock",
            "transport",
            "client",
            "scrape",
            "export",
            "web",
            "store",
            "simulator/wire",
            "app",
            "cli",
        ],
        reason: "time comes into a pure room as an argument",
    },
    Ban {
        needles: &["env::"],
        allowed: &["config"],
        reason: "the environment is read in `config`",
    },
    Ban {
        needles: &[
            "println!",
            "print!",
            "eprintln!",
            "eprint!",
            "process::exit",
            "dbg!",
        ],
        allowed: &["main", "cli", "report"],
        reason: "printing and exit codes belong to `cli`",
    },
    Ban {
        needles: &[
            "seed_from_u64",
            "::from_seed(",
            "from_os_rng",
            "from_entropy",
            "rand::rng",
            "thread_rng",
            "make_rng",
            "rand::random",
        ],
        allowed: &["app/build", "simulator"],
        reason: "random sources are seeded in `app/build` and handed in",
    },
    Ban {
        needles: &["unsafe"],
        allowed: &[],
        reason: "no `unsafe`",
    },
    Ban {
        needles: &["todo!", "unimplemented!"],
        allowed: &[],
        reason: "what is not there is refused, not stubbed",
    },
];

/// Names that say nothing.
const EMPTY_NAMES: &[&str] = &[
    "utils", "util", "common", "helpers", "helper", "misc", "manager",
];

/// Longest file of the product, in lines without tests.
const MOST_LINES: usize = 500;

/// Every breach of a ban in `source`.
pub(super) fn violations(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(form(source));
    if let Some(inside) = source.path.strip_prefix("src/") {
        found.extend(banned(source, inside.trim_end_matches(".rs")));
    }
    found
}

fn banned(source: &Source, inside: &str) -> Vec<String> {
    let mut found = Vec::new();
    for ban in BANS {
        let allowed = ban.allowed.iter().any(|place| {
            inside
                .strip_prefix(place)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if allowed {
            continue;
        }
        for needle in ban.needles {
            for line in lines_with(&source.product, needle) {
                found.push(format!(
                    "{}:{line}: `{needle}`: {}",
                    source.path, ban.reason
                ));
            }
        }
    }
    found
}

/// Lines of `code` in which `needle` stands at word borders.
fn lines_with(code: &str, needle: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    let mut lines = Vec::new();
    for (at, _) in code.match_indices(needle) {
        let end = at + needle.len();
        let first_is_word = is_word(needle.as_bytes()[0]);
        let last_is_word = is_word(needle.as_bytes()[needle.len() - 1]);
        let joined_before = first_is_word && at > 0 && is_word(bytes[at - 1]);
        let joined_after = last_is_word && bytes.get(end).is_some_and(|byte| is_word(*byte));
        if !joined_before && !joined_after {
            lines.push(code[..at].matches('\n').count() + 1);
        }
    }
    lines
}

/// What holds for every file, tests included.
fn form(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let path = &source.path;
    if !source.raw.starts_with("//!") {
        found.push(format!(
            "{path}:1: does not open with `//!`: what it is, and what it is not"
        ));
    }
    let product = product_lines(source);
    if path.starts_with("src/") && product > MOST_LINES {
        found.push(format!(
            "{path}:1: {product} lines without tests, the most is {MOST_LINES}"
        ));
    }
    for name in path
        .trim_end_matches(".rs")
        .split('/')
        .chain(module_names(&source.code))
    {
        if EMPTY_NAMES.contains(&name) {
            found.push(format!("{path}:1: the name `{name}` says nothing"));
        }
    }
    // Written in two parts, so that this file does not find itself.
    for mark in [concat!("TO", "DO"), concat!("FIX", "ME")] {
        for line in lines_with(&source.raw, mark) {
            found.push(format!("{path}:{line}: `{mark}`: finish it, or file it"));
        }
    }
    for line in lines_with(&source.code, "#[ignore") {
        found.push(format!("{path}:{line}: an ignored test tests nothing"));
    }
    found
}

/// Lines of the file less those of its tests.
fn product_lines(source: &Source) -> usize {
    let tests = source
        .code
        .lines()
        .zip(source.product.lines().chain(std::iter::repeat("")))
        .filter(|(code, product)| !code.trim().is_empty() && product.trim().is_empty())
        .count();
    source.raw.lines().count() - tests
}

fn module_names(code: &str) -> impl Iterator<Item = &str> {
    code.lines().filter_map(|line| {
        let rest = line.trim().rsplit_once("mod ")?.1;
        let name = rest.trim_end_matches([';', '{', ' ', '}']);
        name.bytes().all(is_word).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, body: &str, expected: &[&str]) {
        let text = format!("//! A file.\n{body}");
        let found = violations(&Source::new(path, &text));
        assert_eq!(found.len(), expected.len(), "{body}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                found.starts_with(expected),
                "{found} should start with {expected}"
            );
        }
    }

    #[test]
    fn a_ban_is_found_in_its_room_and_not_elsewhere() {
        check(
            "src/aggregate/w.rs",
            "async fn f() {}",
            &["src/aggregate/w.rs:2: `async`"],
        );
        check("src/client/w.rs", "async fn f() { g().await }", &[]);
        check(
            "src/simulator/engine/mod.rs",
            "async fn f() {}",
            &["src/simulator/engine/mod.rs:2"],
        );
        check(
            "src/simulator/wire/mod.rs",
            "async fn f() { tokio::spawn(g()); }",
            &[],
        );
        check(
            "src/web/mod.rs",
            "\n tokio::spawn(g());",
            &["src/web/mod.rs:3: `tokio::spawn`"],
        );
        check(
            "src/export/files.rs",
            "let (a, b) = mpsc::channel(8);",
            &["src/export/files.rs:2: `channel(`"],
        );
        check(
            "src/app/build.rs",
            "let (a, b) = mpsc::channel::<u8>(8);",
            &[],
        );
        check(
            "src/app/build.rs",
            "mpsc::unbounded_channel()",
            &["src/app/build.rs:2: `unbounded_channel`"],
        );
        check(
            "src/scrape/mod.rs",
            "SystemTime::now();",
            &["src/scrape/mod.rs:2"],
        );
        check(
            "src/app/mod.rs",
            "std::env::var(x)",
            &["src/app/mod.rs:2: `env::`"],
        );
        check("src/app/mod.rs", "env!(x)", &[]);
        check(
            "src/app/mod.rs",
            "println!(x)",
            &["src/app/mod.rs:2: `println!`"],
        );
        check(
            "src/app/mod.rs",
            "StdRng::seed_from_u64(1)",
            &["src/app/mod.rs:2"],
        );
        check("src/app/build.rs", "StdRng::seed_from_u64(1)", &[]);
        check(
            "src/cli/mod.rs",
            "unsafe { f() }",
            &["src/cli/mod.rs:2: `unsafe`"],
        );
    }

    #[test]
    fn tests_and_words_in_comments_are_left_alone() {
        check(
            "src/clock.rs",
            "// async\n#[cfg(test)]\nmod tests { async fn f() {} }",
            &[],
        );
        check("src/config/a.rs", "let asynchronous = 1;", &[]);
    }

    #[test]
    fn form_is_checked_in_every_file() {
        let bare = Source::new("tests/it/x.rs", "fn f() {}");
        assert_eq!(violations(&bare).len(), 1);
        check(
            "src/web/utils.rs",
            "",
            &["src/web/utils.rs:1: the name `utils`"],
        );
        check(
            "src/web/mod.rs",
            "mod helpers;",
            &["src/web/mod.rs:1: the name `helpers`"],
        );
        check(
            "src/web/mod.rs",
            concat!("// TO", "DO later"),
            &["src/web/mod.rs:2"],
        );
        check(
            "tests/it/x.rs",
            "#[ignore]\nfn f() {}",
            &["tests/it/x.rs:2: an ignored test"],
        );
        check(
            "src/web/mod.rs",
            &"x();\n".repeat(500),
            &["src/web/mod.rs:1: 501 lines"],
        );
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}", "x();\n".repeat(500));
        check("src/web/mod.rs", &tests, &[]);
    }
}
