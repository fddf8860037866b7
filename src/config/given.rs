//! One value as it was given, and its readers: durations, rates, counts, sizes, words.
//!
//! A reader returns the typed value or a [`Refusal`] that says what kind of problem it is. A
//! number without a unit is refused where a unit matters. `NaN`, infinity and exponents are
//! no numbers here.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use figment::value::{Num, Value};

use super::diagnostic::{Problem, quoted};
use super::keys::nearest;

/// Why a value is not taken.
pub(super) struct Refusal {
    pub(super) problem: Problem,
    /// What was wanted, where it is more than the key table says.
    pub(super) wanted: Option<String>,
    pub(super) hint: Option<String>,
}

impl Refusal {
    pub(super) fn new(problem: Problem) -> Self {
        Self {
            problem,
            wanted: None,
            hint: None,
        }
    }

    pub(super) fn wanted(mut self, wanted: impl Into<String>) -> Self {
        self.wanted = Some(wanted.into());
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

type Read<T> = Result<T, Refusal>;

/// A value as it was given.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) value: &'a Value,
    /// From the environment or a flag: every value is a text then.
    pub(super) untyped: bool,
}

impl<'a> Given<'a> {
    /// The value for a message.
    pub(super) fn shown(&self) -> String {
        match self.value {
            Value::Dict(_, dict) if dict.is_empty() => "an empty section".to_owned(),
            Value::Array(_, items) if items.is_empty() => "an empty list".to_owned(),
            Value::Dict(..) => "a section".to_owned(),
            Value::Array(..) => "a list".to_owned(),
            Value::Empty(..) => "nothing".to_owned(),
            Value::String(_, text) => quoted(text),
            Value::Char(_, letter) => quoted(&letter.to_string()),
            Value::Bool(_, flag) => format!("`{flag}`"),
            Value::Num(_, number) => quoted(&number_text(*number)),
        }
    }

    /// A text.
    pub(super) fn text(&self) -> Read<&'a str> {
        match self.value {
            Value::String(_, text) => Ok(text),
            Value::Num(..) | Value::Bool(..) => Err(Refusal::new(Problem::WrongType).hint(
                format!("put it in quotes: `\"{}\"`", self.shown().trim_matches('`')),
            )),
            _ => Err(Refusal::new(Problem::WrongType)),
        }
    }

    /// A text, or a number as it would be written.
    pub(super) fn scalar(&self) -> Option<String> {
        match self.value {
            Value::String(_, text) => Some(text.clone()),
            Value::Num(_, number) => Some(number_text(*number)),
            _ => None,
        }
    }

    /// One of a closed set of words.
    pub(super) fn word<T: Copy>(&self, known: &[(&str, T)], later: &[&str]) -> Read<T> {
        let text = self.text()?;
        if let Some((_, value)) = known.iter().find(|(word, _)| *word == text) {
            return Ok(*value);
        }
        if later.contains(&text) {
            return Err(Refusal::new(Problem::NotAvailable));
        }
        let refusal = Refusal::new(Problem::NotUnderstood);
        Err(match nearest(text, known.iter().map(|(word, _)| *word)) {
            Some(near) => refusal.hint(format!("did you mean `{near}`")),
            None => refusal,
        })
    }

    /// `true` or `false`. The other words of the older YAML are told what to write.
    pub(super) fn flag(&self) -> Read<bool> {
        let refused = |flag: &str| {
            Err(Refusal::new(Problem::WrongType).hint(format!("write `{flag}`, without quotes")))
        };
        match self.value {
            Value::Bool(_, flag) => Ok(*flag),
            Value::String(_, text) => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "y" => refused("true"),
                "false" | "no" | "off" | "n" => refused("false"),
                _ => Err(Refusal::new(Problem::WrongType)),
            },
            _ => Err(Refusal::new(Problem::WrongType)),
        }
    }

    /// A whole number without a unit.
    pub(super) fn whole(&self, range: RangeInclusive<u64>) -> Read<u64> {
        let text = match self.value {
            Value::Num(_, number) => number_text(*number),
            Value::String(_, text) if self.untyped => text.clone(),
            Value::String(_, text) => {
                let refusal = Refusal::new(Problem::WrongType);
                return Err(match text.parse::<u64>() {
                    Ok(number) => refusal.hint(format!("without quotes: `{number}`")),
                    Err(_) => refusal,
                });
            }
            _ => return Err(Refusal::new(Problem::WrongType)),
        };
        whole(&text).and_then(|number| within(number, &range))
    }

    /// A whole number, perhaps with `k`, `M` or `G`.
    pub(super) fn count(&self, range: RangeInclusive<u64>) -> Read<u64> {
        let Value::String(_, text) = self.value else {
            return self.whole(range);
        };
        let factor = |unit: &str| match unit {
            "" => Some(1),
            "k" => Some(1_000),
            "M" => Some(1_000_000),
            "G" => Some(1_000_000_000),
            _ => None,
        };
        within(scaled(text, factor, "`k`, `M` or `G`, or none")?, &range)
    }

    /// A number of bytes with a unit, from `B` to `TiB`.
    pub(super) fn size(&self, range: RangeInclusive<u64>) -> Read<u64> {
        let text = self.unit_text("MB")?;
        let factor = |unit: &str| match unit {
            "B" => Some(1),
            "kB" | "KB" => Some(1_000),
            "MB" => Some(1_000_000),
            "GB" => Some(1_000_000_000),
            "TB" => Some(1_000_000_000_000),
            "KiB" => Some(1 << 10),
            "MiB" => Some(1 << 20),
            "GiB" => Some(1 << 30),
            "TiB" => Some(1 << 40),
            _ => None,
        };
        let size = scaled(text, factor, "`B`, `kB`, `MB`, `GB`, `KiB`, `MiB` or `GiB`")?;
        if range.contains(&size) {
            Ok(size)
        } else {
            let bytes = |size: &u64| format!("{size}B");
            Err(out_of_range(&bytes(range.start()), &bytes(range.end())))
        }
    }

    /// A span of time with a unit, from `us` to `d`.
    pub(super) fn duration(&self, range: RangeInclusive<Duration>) -> Read<Duration> {
        let text = self.unit_text("s")?;
        let nanos = |unit: &str| match unit {
            "us" | "µs" => Some(1_000),
            "ms" => Some(1_000_000),
            "s" => Some(1_000_000_000),
            "m" | "min" => Some(60_000_000_000),
            "h" => Some(3_600_000_000_000),
            "d" => Some(86_400_000_000_000),
            _ => None,
        };
        let value = Duration::from_nanos(scaled(text, nanos, "`ms`, `s`, `m`, `h` or `d`")?);
        if range.contains(&value) {
            Ok(value)
        } else {
            Err(out_of_range(&shown(*range.start()), &shown(*range.end())))
        }
    }

    /// Events per second, written `0.2/s`, `12/min`, `100/h` or `5/d`.
    pub(super) fn rate(&self, most: f64) -> Read<f64> {
        match self.rate_or_zero(most)? {
            rate if rate > 0.0 => Ok(rate),
            _ => Err(Refusal::new(Problem::OutOfRange)
                .wanted(format!("a rate above `0/s`, at most `{most}/s`"))),
        }
    }

    /// As [`Self::rate`], or none at all.
    pub(super) fn rate_or_zero(&self, most: f64) -> Read<f64> {
        let text = self.unit_text("/s")?;
        let (number, unit) = split(text);
        let seconds = match unit {
            "/s" => 1.0,
            "/m" | "/min" => 60.0,
            "/h" => 3_600.0,
            "/d" => 86_400.0,
            _ => return Err(Refusal::new(Problem::WrongUnit)),
        };
        let rate = decimal(number)? / seconds;
        if rate <= most {
            Ok(rate)
        } else {
            Err(Refusal::new(Problem::OutOfRange)
                .wanted(format!("a rate above `0/s`, at most `{most}/s`")))
        }
    }

    /// A share of all, written `10%`, above 0 and at most 1.
    pub(super) fn share(&self) -> Read<f64> {
        let text = self.unit_text("%")?;
        let (number, unit) = split(text);
        if unit != "%" {
            return Err(Refusal::new(Problem::WrongUnit));
        }
        let share = hundredths(number)?;
        if share > 0.0 && share <= 1.0 {
            Ok(share)
        } else {
            Err(Refusal::new(Problem::OutOfRange).wanted("above `0%`, at most `100%`"))
        }
    }

    /// A limit and the share of requests that are to hold it, written `500ms at p95`.
    pub(super) fn limit(&self, range: RangeInclusive<Duration>) -> Read<(Duration, f64)> {
        let text = match self.value {
            Value::Num(_, number) => {
                return Err(Refusal::new(Problem::WrongUnit)
                    .hint(format!("write `{}ms at p95`", number_text(*number))));
            }
            _ => self.text()?,
        };
        let Some((span, objective)) = text.split_once(" at ") else {
            return Err(Refusal::new(Problem::NotUnderstood)
                .hint("say what share of requests is to hold it, as in `at p95`"));
        };
        let span = Value::from(span.trim());
        let span = Given {
            value: &span,
            untyped: self.untyped,
        };
        Ok((span.duration(range)?, quantile(objective.trim())?))
    }

    /// A plain number.
    pub(super) fn number(&self, range: RangeInclusive<f64>) -> Read<f64> {
        let text = match self.value {
            Value::Num(_, number) => number_text(*number),
            Value::String(_, text) if self.untyped => text.clone(),
            _ => return Err(Refusal::new(Problem::WrongType)),
        };
        let number = decimal(&text)?;
        if range.contains(&number) {
            Ok(number)
        } else {
            Err(out_of_range(range.start(), range.end()))
        }
    }

    /// An IP address and a port.
    pub(super) fn address(&self) -> Read<SocketAddr> {
        let text = self.text()?;
        text.parse().map_err(|_| {
            let refusal = Refusal::new(Problem::NotUnderstood);
            match text.split_once(':') {
                Some(("localhost", port)) => refusal.hint(format!("write `127.0.0.1:{port}`")),
                Some(("", port)) => {
                    refusal.hint(format!("write `0.0.0.0:{port}` for all interfaces"))
                }
                _ => refusal,
            }
        })
    }

    /// A text that must carry a unit; a bare number is told to take `unit`.
    fn unit_text(&self, unit: &str) -> Read<&'a str> {
        let bare =
            |number: &str| Refusal::new(Problem::WrongUnit).hint(format!("write `{number}{unit}`"));
        match self.value {
            Value::Num(_, number) => Err(bare(&number_text(*number))),
            Value::String(_, text) if split(text).1.is_empty() && decimal(text).is_ok() => {
                Err(bare(text.trim()))
            }
            _ => self.text(),
        }
    }
}

fn number_text(number: Num) -> String {
    if let Some(number) = number.to_u128() {
        return number.to_string();
    }
    if let Some(number) = number.to_i128() {
        return number.to_string();
    }
    number
        .to_f64()
        .map_or_else(String::new, |number| number.to_string())
}

/// Splits `12.5ms` into `12.5` and `ms`.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_')))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim_start())
}

/// Digits with at most one point; a sign is refused as out of range.
fn decimal(text: &str) -> Read<f64> {
    if text.starts_with('-') {
        return Err(Refusal::new(Problem::OutOfRange).hint("it cannot be negative"));
    }
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    match text.parse::<f64>() {
        Ok(number) if plain && number.is_finite() => Ok(number),
        _ => Err(Refusal::new(Problem::NotUnderstood)),
    }
}

/// A hundredth of a decimal number, to the last digit: `99.9` is the double nearest to 0.999.
fn hundredths(number: &str) -> Read<f64> {
    decimal(number)?;
    format!("{number}e-2")
        .parse()
        .map_err(|_| Refusal::new(Problem::NotUnderstood))
}

/// A quantile, written `p95` or `p99.9`; neither none nor all.
fn quantile(text: &str) -> Read<f64> {
    let Some(number) = text.strip_prefix('p') else {
        return Err(Refusal::new(Problem::NotUnderstood)
            .hint("the objective is a quantile, as in `at p95`"));
    };
    let share = hundredths(number)?;
    if share > 0.0 && share < 1.0 {
        Ok(share)
    } else {
        Err(Refusal::new(Problem::OutOfRange).wanted("an objective above `p0`, below `p100`"))
    }
}

fn whole(text: &str) -> Read<u64> {
    text.trim().parse().map_err(|_| {
        let problem = match decimal(text.trim()) {
            Err(refusal) => return refusal,
            // Digits only, but more than fit.
            Ok(_) if !text.contains('.') => Problem::OutOfRange,
            Ok(_) => Problem::WrongType,
        };
        Refusal::new(problem)
    })
}

/// The number of a text such as `1.5GB` times what its unit stands for, as a whole number.
fn scaled(text: &str, factor: impl Fn(&str) -> Option<u64>, units: &str) -> Read<u64> {
    let (number, unit) = split(text);
    if number.is_empty() {
        return Err(Refusal::new(Problem::NotUnderstood));
    }
    let Some(factor) = factor(unit) else {
        return Err(Refusal::new(Problem::WrongUnit).hint(format!("the units are {units}")));
    };
    if let Ok(number) = number.parse::<u64>() {
        return number
            .checked_mul(factor)
            .ok_or_else(|| Refusal::new(Problem::OutOfRange));
    }
    let number = decimal(number)?;
    Ok(rounded(number * whole_as_f64(factor)))
}

/// Exact for the factors above, which are below 2^53.
#[allow(
    clippy::cast_precision_loss,
    reason = "unit factors are below 2^53, so they are exact"
)]
const fn whole_as_f64(factor: u64) -> f64 {
    factor as f64
}

/// The nearest whole number; `number` is finite and not negative.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and a range check follows"
)]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

fn within(number: u64, range: &RangeInclusive<u64>) -> Read<u64> {
    if range.contains(&number) {
        Ok(number)
    } else {
        Err(out_of_range(range.start(), range.end()))
    }
}

fn out_of_range(least: &impl Display, most: &impl Display) -> Refusal {
    Refusal::new(Problem::OutOfRange).wanted(format!("from `{least}` to `{most}`"))
}

/// A duration as it could be written in the file: the largest unit that leaves no fraction.
pub(super) fn shown(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    for (unit, size) in [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
    ] {
        if nanos >= size && nanos.is_multiple_of(size) {
            return format!("{}{unit}", nanos / size);
        }
    }
    format!("{}us", nanos / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(value: &Value) -> Given<'_> {
        Given {
            value,
            untyped: false,
        }
    }

    #[test]
    fn durations_carry_a_unit() {
        let range = Duration::from_millis(1)..=Duration::from_hours(48);
        for (text, millis) in [
            ("250ms", 250),
            ("1.5s", 1_500),
            ("10m", 600_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            ("0.001s", 1),
        ] {
            let value = Value::from(text);
            let read = given(&value).duration(range.clone()).ok();
            assert_eq!(read, Some(Duration::from_millis(millis)), "{text}");
        }
        for (text, problem) in [
            ("5", Problem::WrongUnit),
            ("5 parsecs", Problem::WrongUnit),
            ("-5s", Problem::OutOfRange),
            ("0s", Problem::OutOfRange),
            ("49h", Problem::OutOfRange),
            ("NaNs", Problem::NotUnderstood),
            ("infs", Problem::NotUnderstood),
            ("1.2.3s", Problem::NotUnderstood),
            ("99999999999999999999d", Problem::OutOfRange),
            ("", Problem::NotUnderstood),
        ] {
            let value = Value::from(text);
            let read = given(&value).duration(range.clone());
            assert_eq!(
                read.err().map(|refusal| refusal.problem),
                Some(problem),
                "{text}"
            );
        }
    }

    #[test]
    fn rates_are_per_second() {
        for (text, rate) in [
            ("0.2/s", 0.2),
            ("12/min", 0.2),
            ("18/h", 0.005),
            ("8640/d", 0.1),
        ] {
            let value = Value::from(text);
            let read = given(&value)
                .rate(100.0)
                .unwrap_or_else(|_| panic!("{text}"));
            assert!((read - rate).abs() < 1e-12, "{text}: {read}");
        }
        for (text, problem) in [
            ("0/s", Problem::OutOfRange),
            ("-1/s", Problem::OutOfRange),
            ("101/s", Problem::OutOfRange),
            ("5", Problem::WrongUnit),
            ("5/parsec", Problem::WrongUnit),
            ("/s", Problem::NotUnderstood),
            ("inf/s", Problem::WrongUnit),
        ] {
            let value = Value::from(text);
            let read = given(&value).rate(100.0);
            assert_eq!(
                read.err().map(|refusal| refusal.problem),
                Some(problem),
                "{text}"
            );
        }
    }

    #[test]
    fn counts_and_sizes_take_suffixes() {
        for (text, count) in [
            ("5M", 5_000_000),
            ("50k", 50_000),
            ("1.5k", 1_500),
            ("7", 7),
        ] {
            let value = Value::from(text);
            assert_eq!(
                given(&value).count(1..=u64::MAX).ok(),
                Some(count),
                "{text}"
            );
        }
        for (text, size) in [
            ("100MB", 100_000_000),
            ("64KiB", 65_536),
            ("0.5 GiB", 536_870_912),
        ] {
            let value = Value::from(text);
            assert_eq!(given(&value).size(1..=u64::MAX).ok(), Some(size), "{text}");
        }
        let value = Value::from("100mb");
        let read = given(&value).size(1..=u64::MAX);
        assert_eq!(
            read.err().map(|refusal| refusal.problem),
            Some(Problem::WrongUnit)
        );
    }
}
