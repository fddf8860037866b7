//! Our reading of metrics pages against the parser of Prometheus' own Python client: the pages of
//! real servers, and one with everything that the text format allows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use tokencanary::scrape::Lines;

use super::components::component;
use super::prometheus::told_of;

pub(super) const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/components/parse_text_page.py"
);

const ODD: &str = r#"# HELP a A help with \\ and \n in it
# TYPE a counter
# a remark
a{b="q\"\\n\nz",c="{d=\"1\"}, # x",} 1 1700000000000
a{ b = "c" , d="e" }	7
a{} 1.5e3
b_colon:c -0.25
b -Inf
b +Inf
b NaN
# TYPE h histogram
h_bucket{le="0.1"} 1
h_bucket{le="+Inf"} 2
h_sum 8.128902e+06
h_count 2
# TYPE alone gauge
"#;

type Sample = (String, BTreeMap<String, String>, String);

/// A value as both write it.
fn shown(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else {
        format!("{value:?}")
    }
}

fn reference(page: &str) -> Vec<Sample> {
    let mut python = Command::new(component("TOKENCANARY_PYTHON"));
    python.arg(SCRIPT);
    let told = told_of(python, page);
    let samples: Vec<Sample> = serde_json::from_str(&told).expect("it prints samples");
    let same = |(name, labels, value): Sample| {
        let value: f64 = value.parse().expect("a number");
        (name, labels, shown(value))
    };
    samples.into_iter().map(same).collect()
}

fn ours(page: &str) -> Vec<Sample> {
    let mut lines = Lines::new(page);
    let samples = lines
        .by_ref()
        .map(|line| {
            let labels = line.labels.iter();
            (
                line.name.into_owned(),
                labels
                    .map(|(name, value)| (name.into_owned(), value.into_owned()))
                    .collect(),
                shown(line.value),
            )
        })
        .collect();
    assert_eq!(lines.bad(), 0);
    samples
}

/// Both, in one order: the reference puts families together. It also adds `_total` to counters
/// that lack it, so names are compared without.
fn check(page: &str) {
    let plain = |samples: Vec<Sample>| {
        let mut samples: Vec<Sample> = samples
            .into_iter()
            .map(|(name, labels, value)| {
                (name.trim_end_matches("_total").to_owned(), labels, value)
            })
            .collect();
        samples.sort();
        samples
    };
    let (theirs, ours) = (plain(reference(page)), plain(ours(page)));
    assert!(!ours.is_empty());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn the_reference_parser_reads_the_pages_of_servers_as_we_do() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/metrics");
    let mut pages = 0;
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        check(&fs::read_to_string(path).expect("it is text"));
        pages += 1;
    }
    assert!(pages >= 4, "{pages}");
}

#[test]
fn the_reference_parser_reads_all_that_is_allowed_as_we_do() {
    check(ODD);
}
