//! Holds the documents together: every relative link leads to a file that is there.
//!
//! Anchors within a page and links to other sites are not checked.

use std::fs;
use std::path::{Path, PathBuf};

/// README.md and everything below `docs/` that ends in `.md`.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("README.md")];
    let mut dirs = vec![root.join("docs")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).expect("the directory can be read") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// Targets of the links of `text` that lead to files, without anchors.
fn file_links(text: &str) -> Vec<&str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link.split_once('#').map_or(link, |(file, _)| file))
        .filter(|file| !file.is_empty() && !file.contains("://"))
        .collect()
}

#[test]
fn only_links_to_files_are_taken() {
    let text = "[a](b.md), ![c](d/e.png) and [f](#g), [h](i.md#j)\n[k](https://l.m/n)";
    assert_eq!(file_links(text), ["b.md", "d/e.png", "i.md"]);
}

#[test]
fn every_relative_link_leads_to_a_file() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).expect("the document can be read");
        let dir = document.parent().expect("a file is in a directory");
        for link in file_links(&text) {
            if !dir.join(link).exists() {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_index_names_every_document() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let index = root.join("README.md");
    let text = fs::read_to_string(&index).expect("the index can be read");
    let linked: Vec<PathBuf> = file_links(&text)
        .iter()
        .map(|link| root.join(link))
        .collect();
    for document in documents().split_off(1) {
        assert!(
            document == index || linked.contains(&document),
            "{} is not in the index",
            document.display()
        );
    }
}
