//! Rust source as the tidy checks see it: comments, text literals and tests blanked out.
//!
//! Blanked parts become spaces, so line numbers stay those of the file. This is a scanner, not a
//! parser: it knows just enough of Rust to find items and paths, and errs by blanking too little,
//! which shows as a finding.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One file of the tree.
pub(super) struct Source {
    /// Path from the repository root, with `/`.
    pub(super) path: String,
    /// As it is on disk.
    pub(super) raw: String,
    /// Without comments and literals.
    pub(super) code: String,
    /// `code` without `#[cfg(test)]` items; empty for a file that is all tests.
    pub(super) product: String,
}

impl Source {
    /// Scans `raw` as if it lay at `path`.
    pub(super) fn new(path: &str, raw: &str) -> Self {
        let code = blank_text(raw);
        let product = blank_tests(&code).0;
        Self {
            path: path.to_owned(),
            raw: raw.to_owned(),
            code,
            product,
        }
    }

    /// The module path below the crate root: `["export", "otlp", "queue"]`; empty for the root.
    pub(super) fn module(&self) -> Vec<&str> {
        let inside = self.path.trim_start_matches("src/");
        let stem = inside.trim_end_matches(".rs").trim_end_matches("/mod");
        match stem {
            "lib" | "main" => Vec::new(),
            _ => stem.split('/').collect(),
        }
    }
}

/// All Rust files below `src` and `tests`, sorted by path.
pub(super) fn tree() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for top in ["src", "tests", "benches"] {
        collect(&root.join(top), &mut paths);
    }
    paths.sort();
    let mut sources: Vec<Source> = paths
        .iter()
        .map(|path| {
            let raw = fs::read_to_string(path).expect("a file just listed can be read");
            let inside = path
                .strip_prefix(root)
                .expect("it was found below the root");
            let name = inside.to_str().expect("paths in this tree are ASCII");
            Source::new(name, &raw)
        })
        .collect();
    let tests = test_files(&sources);
    for source in &mut sources {
        let path = &source.path;
        if tests
            .iter()
            .any(|test| path == test || test.ends_with('/') && path.starts_with(test))
        {
            source.product.clear();
        }
    }
    sources
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Files that are modules under `#[cfg(test)]` in their parent, and folders (with a `/` at the
/// end) of such modules, whose files are tests too.
fn test_files(sources: &[Source]) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for source in sources
        .iter()
        .filter(|source| source.path.starts_with("src/"))
    {
        let mut folder = String::from("src");
        for part in source.module() {
            folder.push('/');
            folder.push_str(part);
        }
        for name in blank_tests(&source.code).1 {
            files.insert(format!("{folder}/{name}.rs"));
            files.insert(format!("{folder}/{name}/"));
        }
    }
    files
}

/// `text` with comments and the contents of string and character literals blanked.
fn blank_text(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = if rest.starts_with(b"//") {
            at + rest
                .iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            at + block_comment(rest)
        } else if let Some(hashes) = raw_string(bytes, at) {
            at + raw_length(rest, hashes)
        } else if rest[0] == b'"' || rest[0] == b'\'' && is_character(text, at) {
            at + quoted(rest)
        } else {
            at += 1;
            continue;
        };
        blank(&mut out, at, end);
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn blank(out: &mut [u8], from: usize, to: usize) {
    for byte in &mut out[from..to] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

/// Length of a block comment, which may hold others.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Number of `#` if a raw string starts here.
fn raw_string(bytes: &[u8], at: usize) -> Option<usize> {
    let fresh = at == 0 || !is_word(bytes[at - 1]) || bytes[at - 1] == b'b';
    if bytes[at] != b'r' || !fresh {
        return None;
    }
    let hashes = bytes[at + 1..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    (bytes.get(at + 1 + hashes) == Some(&b'"')).then_some(hashes)
}

fn raw_length(rest: &[u8], hashes: usize) -> usize {
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let open = 2 + hashes;
    rest[open..]
        .windows(close.len())
        .position(|window| window == close)
        .map_or(rest.len(), |found| open + found + close.len())
}

/// Length of a literal that ends with the byte it starts with.
fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == rest[0] => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Whether the `'` at `at` opens a character and not a lifetime.
fn is_character(text: &str, at: usize) -> bool {
    let mut next = text[at + 1..].chars();
    match next.next() {
        Some('\\') => true,
        Some(_) => next.next() == Some('\''),
        None => false,
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// `code` with the items under `#[cfg(test)]` blanked, and the names of those that are modules
/// in files of their own.
fn blank_tests(code: &str) -> (String, Vec<String>) {
    let mut out = code.as_bytes().to_vec();
    let mut modules = Vec::new();
    let mut from = 0;
    while let Some(found) = code[from..].find("#[cfg(") {
        let start = from + found;
        let attribute_end = start + bracketed(&code.as_bytes()[start + 1..]) + 1;
        let condition = &code[start + 6..attribute_end];
        if !condition.starts_with("test)") && !condition.starts_with("all(test") {
            from = attribute_end;
            continue;
        }
        let end = item_end(code, attribute_end);
        if let Some(name) = file_module(&code[attribute_end..end]) {
            modules.push(name);
        }
        blank(&mut out, start, end);
        from = end;
    }
    (String::from_utf8_lossy(&out).into_owned(), modules)
}

/// End of the item that starts after `from`: its `;`, or the brace that closes its body.
fn item_end(code: &str, from: usize) -> usize {
    let bytes = code.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b';' => return at + 1,
            // The group of a `use`, which goes on to its `;`.
            b'{' if code[..at].ends_with("::") => at += bracketed(&bytes[at..]),
            b'{' => return at + bracketed(&bytes[at..]),
            b'[' | b'(' => at += bracketed(&bytes[at..]),
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Length from an opening bracket of any kind to the one that closes it.
fn bracketed(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    rest.len()
}

fn file_module(item: &str) -> Option<String> {
    let name = item
        .trim()
        .trim_end_matches(';')
        .rsplit_once("mod ")?
        .1
        .trim();
    let plain = item.trim().ends_with(';') && name.bytes().all(is_word);
    plain.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let source = Source::new(
            "src/x.rs",
            "let a = \"crate::web\"; // crate::app\nlet b = r#\"crate::\"cli\"#; let c = '\"'; let d: &'static str = e; /* a /* b */ c */ f",
        );
        assert!(!source.code.contains("crate"), "{}", source.code);
        assert!(source.code.contains("&'static str = e;"), "{}", source.code);
        assert!(source.code.ends_with(" f"));
    }

    #[test]
    fn tests_are_not_product() {
        let source = Source::new(
            "src/x.rs",
            "a\n#[cfg(test)]\n#[allow(dead_code)]\nmod tests { fn f() { {} } }\nb\n#[cfg(test)]\nuse x::{y, z};\nc #[cfg(unix)] d",
        );
        let words: Vec<&str> = source.product.split_whitespace().collect();
        assert_eq!(words, ["a", "b", "c", "#[cfg(unix)]", "d"]);
        assert_eq!(source.product.lines().count(), source.raw.lines().count());
    }

    #[test]
    fn files_of_a_test_module_are_tests() {
        let sources = [Source::new(
            "src/web/mod.rs",
            "#[cfg(test)]\nmod tests;\nmod page;",
        )];
        let expected = ["src/web/tests.rs", "src/web/tests/"].map(str::to_owned);
        assert_eq!(test_files(&sources), BTreeSet::from(expected));
    }

    #[test]
    fn a_test_module_in_its_own_file_is_named() {
        let code = "#[cfg(test)]\nmod fixture;\n#[cfg(test)]\nmod tests {}";
        assert_eq!(blank_tests(code).1, ["fixture"]);
    }
}
