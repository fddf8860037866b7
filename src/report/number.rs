//! How numbers look in text: thousands grouped, milliseconds with a fixed number of places so
//! that columns line up, `–` for what is not known.

use std::time::Duration;

/// Stands for a value that is not known.
pub(super) const UNKNOWN: &str = "–";

/// `1234567` as `1,234,567`.
pub(super) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `value` with `places` decimals and its thousands grouped: `12,034.50`.
pub(super) fn decimal(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    match fraction {
        Some(fraction) => format!("{sign}{whole}.{fraction}"),
        None => format!("{sign}{whole}"),
    }
}

/// A duration in milliseconds with two places, without the unit.
pub(super) fn millis(value: Duration) -> String {
    decimal(value.as_secs_f64() * 1e3, 2)
}

/// A duration in words that fit a sentence: `1.80 ms`, `12.0 s`, `13 h 20 min`.
pub(super) fn span(value: Duration) -> String {
    let seconds = value.as_secs();
    if seconds >= 3600 {
        format!("{} h {} min", seconds / 3600, seconds / 60 % 60)
    } else if seconds >= 60 {
        format!("{} min {} s", seconds / 60, seconds % 60)
    } else if seconds >= 1 {
        format!("{:.1} s", value.as_secs_f64())
    } else {
        format!("{} ms", millis(value))
    }
}

/// A share as a percentage: `41 %`, with one place below ten: `0.2 %`.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value > 0.0 && value < 10.0 {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(value), text);
        }
        assert_eq!(decimal(12_034.504, 2), "12,034.50");
        assert_eq!(decimal(-0.5, 1), "-0.5");
        assert_eq!(decimal(f64::INFINITY, 2), "inf");
    }

    #[test]
    fn spans_are_said_in_their_own_unit() {
        assert_eq!(span(Duration::from_micros(1_800)), "1.80 ms");
        assert_eq!(span(Duration::from_millis(12_040)), "12.0 s");
        assert_eq!(span(Duration::from_secs(95)), "1 min 35 s");
        assert_eq!(span(Duration::from_mins(800)), "13 h 20 min");
    }

    #[test]
    fn small_shares_keep_a_place() {
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.002), "0.2 %");
        assert_eq!(percent(0.412), "41 %");
    }
}
