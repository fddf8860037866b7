//! Holds the borders of the rooms and the habits of the house over the whole source tree.
//!
//! The tables are in `imports` (who may import whom), `bans` (what may stand where) and `cards`
//! (which crate does which job). Each check has tests of its own on small bad snippets. What the
//! compiler and clippy can see is not checked here.

mod bans;
mod cards;
mod imports;
mod source;

fn none(found: &[String]) {
    assert!(
        found.is_empty(),
        "{} findings:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn rooms_import_only_what_the_table_allows() {
    let found: Vec<String> = source::tree()
        .iter()
        .flat_map(imports::violations)
        .collect();
    none(&found);
}

#[test]
fn nothing_stands_where_it_is_banned() {
    let found: Vec<String> = source::tree().iter().flat_map(bans::violations).collect();
    none(&found);
}

#[test]
fn every_crate_does_its_job_where_a_test_sees_it() {
    none(&cards::violations(cards::CARDS, &source::tree()));
}
