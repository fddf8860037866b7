//! Pages of every engine with known values: those of real servers, and those that are made up.
//! Tests of bug reports are named after their row in the list of what others met.

mod captures;
mod engines;
mod mixed;
mod others;

use std::fmt::Write as _;

use super::{PageRead, read_page};
use crate::measurement::server::{CounterRole, GaugeRole, HistogramRole};

/// All that is known of a page, one fact per line: what is absent has no line.
fn told(read: &PageRead) -> String {
    let mut text = String::new();
    let engine = read
        .engine()
        .map_or("none", crate::measurement::server::Engine::name);
    writeln!(text, "engine {engine}").expect("a text takes all");
    for role in GaugeRole::ALL {
        if let Some(value) = read.state.get(role) {
            writeln!(text, "{} {value}", role.name()).expect("a text takes all");
        }
    }
    let totals = &read.page.totals;
    for role in CounterRole::ALL {
        if let Some(value) = totals.counter(role) {
            writeln!(text, "{} {value} in all", role.name()).expect("a text takes all");
        }
    }
    for role in HistogramRole::ALL {
        if let Some(one) = totals.histogram(role) {
            let name = role.name();
            let (count, sum, bounds) = (one.count, one.sum, one.bounds.len());
            writeln!(text, "{name} {count} values, {sum} s, {bounds} bounds")
                .expect("a text takes all");
        }
    }
    for (reason, count) in &totals.finished {
        writeln!(text, "finished {reason:?} {count}").expect("a text takes all");
    }
    for rank in &read.page.ranks {
        write!(text, "rank {}:", rank.name).expect("a text takes all");
        for role in GaugeRole::ALL {
            if let Some(value) = rank.state.get(role) {
                write!(text, " {} {value}", role.name()).expect("a text takes all");
            }
        }
        text.push('\n');
    }
    for (name, value) in &read.page.info.flags {
        writeln!(text, "flag {name}={value}").expect("a text takes all");
    }
    if !read.page.info.models.is_empty() {
        writeln!(text, "models {}", read.page.info.models.join(" ")).expect("a text takes all");
    }
    text
}

/// Reads `page` for `model`; what is known must be `expected`, and no line bad.
#[track_caller]
fn check_model(page: &str, model: Option<&str>, expected: &str) {
    let read = read_page(page, model);
    assert_eq!(told(&read), expected, "{page:.300}");
    assert_eq!((read.page.bad_lines, read.cut), (0, false), "{page:.300}");
}

#[track_caller]
fn check(page: &str, expected: &str) {
    check_model(page, None, expected);
}

/// A histogram of `name` with bounds at 0.1 and 1, as Python writes it.
fn histogram(name: &str, labels: &str, (low, all, sum): (u32, u32, f64)) -> String {
    let comma = if labels.is_empty() { "" } else { "," };
    let mut text = format!("# TYPE {name} histogram\n");
    for (le, below) in [("0.1", low), ("1.0", all), ("+Inf", all)] {
        writeln!(
            text,
            "{name}_bucket{{{labels}{comma}le=\"{le}\"}} {below}.0"
        )
        .expect("a text takes all");
    }
    writeln!(
        text,
        "{name}_count{{{labels}}} {all}.0\n{name}_sum{{{labels}}} {sum}"
    )
    .expect("a text takes all");
    text
}
