//! The page as text 0.0.4: one pass, every text that repeats made once.

use std::fmt::Write;

use super::View;
use super::family::{self, Family, Label, Series, Value};
use crate::aggregate::Histogram;
use crate::aggregate::grid::ClassicRange;
use crate::export::catalog::Kind;

/// Writes all of `view`.
pub(super) fn write(view: &View<'_>) -> String {
    let streams: Vec<String> = family::stream_labels(view.live)
        .iter()
        .map(|labels| joined(labels))
        .collect();
    let mut page = Page {
        text: String::with_capacity(64 * 1024),
        streams,
    };
    family::for_each(view, |family| page.family(family));
    page.text
}

struct Page {
    text: String,
    /// The labels of each stream, escaped, without braces.
    streams: Vec<String>,
}

impl Page {
    fn family(&mut self, family: &Family<'_>) {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        self.put(&[
            "# HELP ",
            &family.name,
            " ",
            &escaped_help(&family.help),
            "\n",
        ]);
        self.put(&["# TYPE ", &family.name, " ", kind, "\n"]);
        let bounds: Vec<String> = match family.kind {
            Kind::Histogram(range) => range
                .bounds()
                .map(|bound| format!("le=\"{bound}\"}} "))
                .collect(),
            _ => Vec::new(),
        };
        for series in &family.series {
            let labels = self.labels_of(series);
            match (&series.value, family.kind) {
                (Value::Distribution(histogram), Kind::Histogram(range)) => {
                    let shape = (range, bounds.as_slice());
                    self.histogram(&family.name, &labels, shape, histogram);
                }
                (Value::Count(count), _) => self.sample(&family.name, &labels, &count.to_string()),
                (Value::Number(number), _) => self.sample(&family.name, &labels, &float(*number)),
                (Value::Distribution(_), _) => {}
            }
        }
    }

    fn labels_of(&self, series: &Series<'_>) -> String {
        let stream = series.stream.map_or("", |position| &self.streams[position]);
        let own = joined(&series.labels);
        match (stream, own.as_str()) {
            ("", own) => own.to_owned(),
            (stream, "") => stream.to_owned(),
            (stream, own) => format!("{stream},{own}"),
        }
    }

    fn histogram(
        &mut self,
        name: &str,
        labels: &str,
        (range, bounds): (ClassicRange, &[String]),
        histogram: &Histogram,
    ) {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut bucket = |bound: &str, count: u64| {
            self.text.push_str(name);
            self.text.push_str("_bucket{");
            self.text.push_str(labels);
            self.text.push_str(comma);
            self.text.push_str(bound);
            writeln!(self.text, "{count}").expect("writing to a string does not fail");
        };
        for (bound, count) in bounds.iter().zip(histogram.classic(range)) {
            bucket(bound, count);
        }
        bucket("le=\"+Inf\"} ", histogram.count());
        self.sample(&format!("{name}_sum"), labels, &float(histogram.sum()));
        self.sample(
            &format!("{name}_count"),
            labels,
            &histogram.count().to_string(),
        );
    }

    fn sample(&mut self, name: &str, labels: &str, value: &str) {
        if labels.is_empty() {
            self.put(&[name, " ", value, "\n"]);
        } else {
            self.put(&[name, "{", labels, "} ", value, "\n"]);
        }
    }

    fn put(&mut self, parts: &[&str]) {
        for part in parts {
            self.text.push_str(part);
        }
    }
}

fn joined(labels: &[Label<'_>]) -> String {
    let mut text = String::new();
    for (name, value) in labels {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    text
}

fn escaped_help(help: &str) -> String {
    help.replace('\\', "\\\\").replace('\n', "\\n")
}

fn float(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}
