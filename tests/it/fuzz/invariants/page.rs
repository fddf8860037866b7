//! Metrics pages in the Prometheus text format.

use std::fmt::Write;

use tokencanary::scrape::{Line, Lines, MAX_LINES, read_state};

/// All that holds for every page.
pub(crate) fn holds(bytes: &[u8]) {
    let page = &*String::from_utf8_lossy(bytes);
    let (samples, bad) = read(page);
    let lines = page.split('\n').count();
    assert!(samples.len() as u64 + bad <= lines as u64);
    if lines < MAX_LINES {
        lines_stand_alone(page, &samples, bad);
    }
    for sample in &samples {
        reads_back(sample);
    }
    state_is_sound(page, bad);
}

/// One sample, owned: name, labels, and the bits of its value.
type Sample = (String, Vec<(String, String)>, u64);

fn read(page: &str) -> (Vec<Sample>, u64) {
    let mut lines = Lines::new(page);
    let samples = lines.by_ref().map(|line| owned(&line)).collect();
    (samples, lines.bad())
}

fn owned(line: &Line<'_>) -> Sample {
    let labels = line.labels.iter();
    (
        line.name.to_owned(),
        labels
            .map(|(k, v)| (k.to_owned(), v.into_owned()))
            .collect(),
        line.value.to_bits(),
    )
}

/// A page says what its lines say one by one.
fn lines_stand_alone(page: &str, samples: &[Sample], bad: u64) {
    let mut alone = (Vec::new(), 0);
    for line in page.split('\n') {
        let (samples, bad) = read(line);
        assert!(samples.len() as u64 + bad <= 1);
        alone.0.extend(samples);
        alone.1 += bad;
    }
    assert_eq!((&alone.0[..], alone.1), (samples, bad));
}

/// A sample that is written out reads back the same.
fn reads_back(sample: &Sample) {
    let (name, labels, bits) = sample;
    let mut line = format!("{name}{{");
    for (label, value) in labels {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        let value = value.replace('\n', "\\n");
        write!(line, "{label}=\"{value}\",").expect("a text takes all");
    }
    let value = f64::from_bits(*bits);
    write!(line, "}} {value:?}").expect("a text takes all");
    let (back, bad) = read(&line);
    assert_eq!(bad, 0, "{line}");
    let [(back_name, back_labels, back_bits)] = &back[..] else {
        panic!("{} samples in {line}", back.len());
    };
    assert_eq!((back_name, back_labels), (name, labels), "{line}");
    let back = f64::from_bits(*back_bits);
    assert!(
        *back_bits == *bits || (back.is_nan() && value.is_nan()),
        "{line}"
    );
}

/// Loads are amounts, shares are shares.
fn state_is_sound(page: &str, bad: u64) {
    let read = read_state(page);
    assert_eq!(read.bad_lines, bad);
    let state = read.state;
    for amount in [state.running, state.waiting].into_iter().flatten() {
        assert!(amount >= 0.0, "{amount}");
    }
    if let Some(share) = state.kv_usage {
        assert!((0.0..=1.0).contains(&share), "{share}");
    }
    if !read.recognised() {
        assert_eq!(
            (state.running, state.waiting, state.kv_usage),
            (None, None, None)
        );
    }
}
