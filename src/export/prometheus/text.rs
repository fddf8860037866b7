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
        let shape = match family.kind {
            Kind::Histogram(range) => Some(Shape::new(&family.name, range)),
            Kind::Counter | Kind::Gauge => None,
        };
        for series in &family.series {
            let labels = self.labels_of(series);
            match (&series.value, &shape) {
                (Value::Count(count), _) => self.sample(&family.name, &labels, &count.to_string()),
                (Value::Number(number), _) => self.sample(&family.name, &labels, &float(*number)),
                (Value::Distribution(histogram), Some(shape)) => {
                    self.histogram(shape, &labels, histogram);
                }
                // The catalog gives every distribution its bounds.
                (Value::Distribution(_), None) => {}
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

    fn histogram(&mut self, shape: &Shape, labels: &str, histogram: &Histogram) {
        let comma = if labels.is_empty() { "" } else { "," };
        let counts = histogram
            .classic(shape.range)
            .chain(std::iter::once(histogram.count()));
        for (bound, count) in shape.bounds.iter().zip(counts) {
            self.put(&[&shape.bucket, labels, comma, bound]);
            writeln!(self.text, "{count}").expect("writing to a string does not fail");
        }
        self.sample(&shape.sum, labels, &float(histogram.sum()));
        self.sample(&shape.count, labels, &histogram.count().to_string());
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

/// What all series of one histogram have in common, as texts made once.
struct Shape {
    range: ClassicRange,
    bucket: String,
    sum: String,
    count: String,
    /// `le="…"} ` of each bound, the infinite one last.
    bounds: Vec<String>,
}

impl Shape {
    fn new(name: &str, range: ClassicRange) -> Self {
        let text = |bound: String| format!("le=\"{bound}\"}} ");
        Self {
            range,
            bucket: format!("{name}_bucket{{"),
            sum: format!("{name}_sum"),
            count: format!("{name}_count"),
            bounds: range
                .bounds()
                .chain(std::iter::once(f64::INFINITY))
                .map(|bound| text(float(bound)))
                .collect(),
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
