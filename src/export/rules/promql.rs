//! Pieces of `PromQL`: spans of time, label values, and the two forms of a histogram.

use std::time::Duration;

/// Labels that change when a canary is moved or restarted, and say nothing of what it measures.
pub(super) const PLACE: &str = "instance, pod";

/// Labels of a stream beside `target` and `endpoint`.
pub(super) const PROBING: &str = "probe, model, api, cache, connection";

/// Which histograms Prometheus holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Buckets as series with a label `le`.
    Classic,
    /// Native ones.
    Native,
}

impl Form {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Native => "native",
        }
    }

    /// The sum over places of the growth of a histogram, as `histogram_quantile` wants it.
    /// `change` is `rate` or `increase`, `selector` stands in braces or is empty.
    pub(in crate::export) fn grown(
        self,
        change: &str,
        metric: &str,
        [selector, window]: [&str; 2],
    ) -> String {
        let bucket = match self {
            Self::Classic => "_bucket",
            Self::Native => "",
        };
        format!("sum without ({PLACE}) ({change}({metric}{bucket}{selector}[{window}]))")
    }

    /// How many values came.
    pub(in crate::export) fn count(self, metric: &str, [selector, window]: [&str; 2]) -> String {
        match self {
            Self::Classic => {
                format!("sum without ({PLACE}) (increase({metric}_count{selector}[{window}]))")
            }
            Self::Native => format!(
                "histogram_count({})",
                self.grown("increase", metric, [selector, window])
            ),
        }
    }

    /// Their mean.
    pub(in crate::export) fn mean(self, metric: &str, [selector, window]: [&str; 2]) -> String {
        match self {
            Self::Classic => format!(
                "sum without ({PLACE}) (rate({metric}_sum{selector}[{window}]))\n  / (sum without ({PLACE}) (rate({metric}_count{selector}[{window}])) > 0)"
            ),
            Self::Native => {
                let grown = self.grown("rate", metric, [selector, window]);
                format!("histogram_sum({grown})\n  / (histogram_count({grown}) > 0)")
            }
        }
    }
}

/// `time` as Prometheus writes it, to the millisecond below.
#[must_use]
pub fn span_text(time: Duration) -> String {
    const UNITS: [(&str, u128); 5] = [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
        ("ms", 1),
    ];
    let mut left = time.as_millis().max(1);
    let mut text = String::new();
    for (name, size) in UNITS {
        if left >= size {
            text += &(left / size).to_string();
            text += name;
            left %= size;
        }
    }
    text
}

/// `text` between quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for one in text.chars() {
        match one {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// A pattern that matches exactly one of `texts`.
pub(super) fn any_of(texts: &[String]) -> String {
    let escaped = texts.iter().map(|text| {
        let mut out = String::new();
        for one in text.chars() {
            if r"\.+*?()|[]{}^$".contains(one) {
                out.push('\\');
            }
            out.push(one);
        }
        out
    });
    escaped.collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_in_whole_units() {
        for (millis, text) in [
            (300_000, "5m"),
            (2_500, "2s500ms"),
            (86_400_000, "1d"),
            (7_200_000, "2h"),
            (5_400_000, "1h30m"),
            (42_857, "42s857ms"),
            (0, "1ms"),
        ] {
            assert_eq!(span_text(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn names_with_odd_letters_match_themselves_only() {
        let texts = ["a.b".to_owned(), "c|d\"\\".to_owned()];
        assert_eq!(any_of(&texts), r#"a\.b|c\|d"\\"#);
        assert_eq!(quoted(&any_of(&texts)), r#""a\\.b|c\\|d\"\\\\""#);
    }
}
