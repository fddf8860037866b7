//! The page as text, 0.0.4 or `OpenMetrics` 1.0: one pass, every text that repeats made once.
//!
//! Both have the same samples. `OpenMetrics` names a counter's family without `_total`, and adds
//! units, exemplars, when each counter began (`_created`), and a mark at the end.

use std::fmt::Write;

use super::View;
use super::family::{self, Family, Label, Series, Value};
use crate::aggregate::grid::ClassicRange;
use crate::aggregate::{Distribution, Exemplar};
use crate::export::catalog::Kind;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Text 0.0.4.
    Plain,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

/// Writes all of `view`.
pub(super) fn write(view: &View<'_>, dialect: Dialect) -> String {
    let streams: Vec<String> = family::stream_labels(view.live)
        .iter()
        .map(|labels| joined(labels))
        .collect();
    let mut page = Page {
        text: String::with_capacity(64 * 1024),
        dialect,
        streams,
    };
    family::for_each(view, |family| page.family(family));
    if dialect == Dialect::OpenMetrics {
        page.text.push_str("# EOF\n");
    }
    page.text
}

struct Page {
    text: String,
    dialect: Dialect,
    /// The labels of each stream, escaped, without braces.
    streams: Vec<String>,
}

impl Page {
    fn family(&mut self, family: &Family<'_>) {
        let open = self.dialect == Dialect::OpenMetrics;
        self.head(family);
        let shape = match family.kind {
            Kind::Histogram(range) => Some(Shape::new(family, range)),
            Kind::Counter | Kind::Gauge => None,
        };
        let created = family
            .created_unix_ns
            .filter(|_| open)
            .map(|created| (format!("{}_created", family.base()), unix_seconds(created)));
        for series in &family.series {
            let labels = self.labels_of(series);
            match (&series.value, &shape) {
                (Value::Count(count), _) => self.sample(&family.name, &labels, &count.to_string()),
                (Value::Number(number), _) => self.sample(&family.name, &labels, &float(*number)),
                (Value::Distribution(shown), Some(shape)) => {
                    self.histogram(shape, &labels, shown);
                }
                // The catalog gives every distribution its bounds.
                (Value::Distribution(_), None) => {}
            }
            if let Some((name, at)) = &created {
                self.sample(name, &labels, at);
            }
        }
    }

    /// The lines that say what a family is.
    fn head(&mut self, family: &Family<'_>) {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        if self.dialect == Dialect::Plain {
            let help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
            self.put(&["# HELP ", &family.name, " ", &help, "\n"]);
            self.put(&["# TYPE ", &family.name, " ", kind, "\n"]);
            return;
        }
        // The one metric that says what the others are of.
        let (name, kind) = match family.name.strip_suffix("_info") {
            Some(of) if family.is_target_info() => (of, "info"),
            _ => (family.base(), kind),
        };
        self.put(&["# TYPE ", name, " ", kind, "\n"]);
        if let Some(unit) = family.unit() {
            self.put(&["# UNIT ", name, " ", unit, "\n"]);
        }
        self.put(&["# HELP ", name, " ", &escaped(&family.help), "\n"]);
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

    fn histogram(&mut self, shape: &Shape, labels: &str, shown: &Distribution<'_>) {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut above = f64::NEG_INFINITY;
        let buckets = shown
            .classic(shape.range)
            .chain(std::iter::once((f64::INFINITY, shown.count())));
        for (le, (bound, count)) in shape.bounds.iter().zip(buckets) {
            self.put(&[&shape.bucket, labels, comma, le]);
            write!(self.text, "{count}").expect("writing to a string does not fail");
            if self.dialect == Dialect::OpenMetrics
                && let Some(exemplar) = shown.exemplars().newest_in(above, bound)
            {
                self.exemplar(exemplar);
            }
            self.text.push('\n');
            above = bound;
        }
        self.sample(&shape.sum, labels, &float(shown.sum()));
        self.sample(&shape.count, labels, &shown.count().to_string());
    }

    fn exemplar(&mut self, exemplar: &Exemplar) {
        let ids = exemplar.span.ids;
        write!(
            self.text,
            " # {{trace_id=\"{:032x}\",span_id=\"{:016x}\"}} {} {}",
            ids.trace,
            ids.span,
            float(exemplar.value),
            unix_seconds(exemplar.span.unix_ns),
        )
        .expect("writing to a string does not fail");
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
    fn new(family: &Family<'_>, range: ClassicRange) -> Self {
        let name = &family.name;
        let bounds = family.bounds.iter().copied();
        Self {
            range,
            bucket: format!("{name}_bucket{{"),
            sum: format!("{name}_sum"),
            count: format!("{name}_count"),
            bounds: bounds
                .chain(std::iter::once(f64::INFINITY))
                .map(|bound| format!("le=\"{}\"}} ", le(bound)))
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
        push_escaped(&mut text, value);
        text.push('"');
    }
    text
}

/// `text` as a label value, or as help of `OpenMetrics`.
fn escaped(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    push_escaped(&mut all, text);
    all
}

fn push_escaped(into: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\\' => into.push_str("\\\\"),
            '"' => into.push_str("\\\""),
            '\n' => into.push_str("\\n"),
            other => into.push(other),
        }
    }
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

/// A bound as Prometheus writes those that it gets as protobuf: with a point or an exponent.
/// It is a label, so a bound that is written in two ways makes two series.
fn le(bound: f64) -> String {
    let text = float(bound);
    if bound.is_infinite() {
        text
    } else if bound != 0.0 && bound.abs() < 1e-4 {
        let text = format!("{bound:e}");
        match text.split_once("e-") {
            Some((digits, exponent)) => format!("{digits}e-{exponent:0>2}"),
            None => text,
        }
    } else if text.contains('.') {
        text
    } else {
        text + ".0"
    }
}

/// Nanoseconds since the Unix epoch as seconds, to the millisecond.
fn unix_seconds(unix_ns: u64) -> String {
    let millis = unix_ns / 1_000_000;
    format!("{}.{:03}", millis / 1_000, millis % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_written_as_prometheus_writes_them() {
        for (bound, wanted) in [
            (1.0, "1.0"),
            (4_096.0, "4096.0"),
            (0.5, "0.5"),
            (0.000_1, "0.0001"),
            (0.000_030_517_578_125, "3.0517578125e-05"),
            (90.509_667_991_878_09, "90.50966799187809"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(le(bound), wanted);
        }
    }

    #[test]
    fn times_are_seconds_to_the_millisecond() {
        assert_eq!(unix_seconds(1_795_953_601_042_999_999), "1795953601.042");
        assert_eq!(unix_seconds(0), "0.000");
    }
}
