//! Metrics pages in the Prometheus text format.

use std::fmt::Write;

use tokencanary::measurement::ServerState;
use tokencanary::measurement::server::{CounterRole, GaugeRole, HistogramRole};
use tokencanary::scrape::{Item, Line, Lines, MAX_LINE, MAX_LINES, read_page};

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
    items_hold_the_samples(page, &samples);
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
        line.name.clone().into_owned(),
        labels
            .map(|(k, v)| (k.into_owned(), v.into_owned()))
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

/// A text in quotes.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('\n', "\\n"))
}

/// A sample that is written out reads back the same.
fn reads_back(sample: &Sample) {
    let (name, labels, bits) = sample;
    let mut line = format!("{{{},", quoted(name));
    for (label, value) in labels {
        write!(line, "{}={},", quoted(label), quoted(value)).expect("a text takes all");
    }
    let value = f64::from_bits(*bits);
    write!(line, "}} {value:?}").expect("a text takes all");
    let (back, bad) = read(&line);
    // Quotes and escapes may have made it too long.
    if line.len() > MAX_LINE {
        return;
    }
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

/// The samples are those of all that the lines say, and each is said once.
fn items_hold_the_samples(page: &str, samples: &[Sample]) {
    let mut lines = Lines::new(page);
    let mut found = Vec::new();
    while let Some(item) = lines.item() {
        if let Item::Sample(line) = item {
            found.push(owned(&line));
        }
    }
    assert_eq!(found, samples);
}

/// Loads are amounts, shares are shares, and buckets grow.
fn state_is_sound(page: &str, bad: u64) {
    for model in [None, Some("m")] {
        let read = read_page(page, model);
        assert_eq!(read.page.bad_lines, bad);
        for role in GaugeRole::ALL {
            if let Some(value) = read.state.get(role) {
                assert!(value >= 0.0, "{}: {value}", role.name());
                assert!(!role.is_share() || value <= 1.0, "{}: {value}", role.name());
            }
        }
        let totals = &read.page.totals;
        for role in CounterRole::ALL {
            assert!(totals.counter(role).is_none_or(|value| value >= 0.0));
        }
        for role in HistogramRole::ALL {
            let Some(histogram) = totals.histogram(role) else {
                continue;
            };
            assert_eq!(histogram.bounds.len(), histogram.below.len());
            assert!(histogram.bounds.is_sorted() && histogram.below.is_sorted());
            let most = histogram.below.last().copied().unwrap_or_default();
            assert!(most <= histogram.count, "{most} of {}", histogram.count);
        }
        if read.engine().is_none() {
            assert_eq!(read.state, ServerState::default());
        }
    }
}
