//! Numbers as files write them: times to the nanosecond without a detour over binary fractions,
//! lengths, and lists of ids.

use std::time::Duration;

/// Longest time that is taken: 292 years, what nanoseconds in 63 bits reach.
pub(super) const LONGEST: u128 = i64::MAX as u128;

/// Decimal places of a unit of time against nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// 10⁹ nanoseconds.
    Seconds,
    /// 10⁶ nanoseconds.
    Milliseconds,
}

impl Unit {
    const fn places(self) -> i32 {
        match self {
            Self::Seconds => 9,
            Self::Milliseconds => 6,
        }
    }

    /// Its name in messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
        }
    }
}

/// A decimal number of `unit` as a duration, exact to the nanosecond (further digits are cut).
/// `None` if it is negative, not finite, too large or no number.
pub(super) fn duration(text: &str, unit: Unit) -> Option<Duration> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.strip_prefix('+').unwrap_or(whole);
    // `-0.0` is what rounding leaves of a time just before the start.
    let (negative, whole) = match whole.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, whole),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value: u128 = 0;
    // Digits still to come before the point of the wanted unit.
    let mut shift = exponent.checked_add(unit.places())?;
    for digit in whole.bytes() {
        value = push(value, digit)?;
    }
    for digit in fraction.bytes() {
        if !digit.is_ascii_digit() {
            return None;
        }
        // Digits below a nanosecond are cut, as long as they are digits.
        if shift > 0 {
            value = push(value, digit)?;
            shift -= 1;
        }
    }
    let nanos = if shift >= 0 {
        if value == 0 {
            0
        } else {
            value.checked_mul(10_u128.checked_pow(shift.unsigned_abs())?)?
        }
    } else {
        10_u128
            .checked_pow(shift.unsigned_abs())
            .map_or(0, |scale| value / scale)
    };
    if (negative && nanos > 0) || nanos > LONGEST {
        return None;
    }
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

fn push(value: u128, digit: u8) -> Option<u128> {
    if !digit.is_ascii_digit() {
        return None;
    }
    value.checked_mul(10)?.checked_add(u128::from(digit - b'0'))
}

/// A duration as a decimal number of `unit`, with as many places as it needs.
pub(super) fn write_duration(value: Duration, unit: Unit) -> String {
    let scale = 10_u128.pow(unit.places().unsigned_abs());
    let (whole, rest) = (value.as_nanos() / scale, value.as_nanos() % scale);
    if rest == 0 {
        return whole.to_string();
    }
    let places = unit.places().unsigned_abs() as usize;
    let fraction = format!("{rest:0places$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

/// A count of tokens. A fraction of zero, as pandas writes for columns with gaps, is taken.
pub(super) fn tokens(text: &str) -> Option<u32> {
    let whole = match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && fraction.bytes().all(|b| b == b'0') => {
            whole
        }
        Some(_) => return None,
        None => text,
    };
    if whole.is_empty() || !whole.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    whole.parse().ok()
}

/// Adds the numbers of a JSON array to `ids`; on failure the text of the first that is none.
pub(super) fn ids(array: &str, ids: &mut Vec<u64>) -> Result<(), String> {
    let inner = array
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .ok_or_else(|| array.to_owned())?;
    if inner.trim_ascii().is_empty() {
        return Ok(());
    }
    let (mut value, mut digits, mut start) = (0_u64, 0_usize, 0);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                // What does not fit is found by the number of digits.
                value = value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                digits += 1;
            }
            b',' => {
                ids.push(finished(value, digits).map_or_else(|| whole(inner, start), Ok)?);
                (value, digits, start) = (0, 0, at + 1);
            }
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => return Err(element(inner, start)),
        }
    }
    ids.push(finished(value, digits).map_or_else(|| whole(inner, start), Ok)?);
    Ok(())
}

/// A number of so many digits, if it fits for certain.
fn finished(value: u64, digits: usize) -> Option<u64> {
    (1..=19).contains(&digits).then_some(value)
}

/// The element that begins here, if it is a number that fits, else its text.
fn whole(inner: &str, start: usize) -> Result<u64, String> {
    let text = element(inner, start);
    text.parse().map_err(|_| text)
}

fn element(inner: &str, start: usize) -> String {
    let rest = inner.get(start..).unwrap_or(inner);
    let end = rest.find(',').unwrap_or(rest.len());
    rest[..end].trim_ascii().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str, unit: Unit) -> Option<u128> {
        duration(text, unit).map(|time| time.as_nanos())
    }

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        assert_eq!(nanos("61.114", Unit::Seconds), Some(61_114_000_000));
        assert_eq!(nanos("3001", Unit::Milliseconds), Some(3_001_000_000));
        assert_eq!(nanos("0.1", Unit::Milliseconds), Some(100_000));
        assert_eq!(nanos("1.5e3", Unit::Milliseconds), Some(1_500_000_000));
        assert_eq!(nanos("25e-1", Unit::Seconds), Some(2_500_000_000));
        assert_eq!(nanos("1e-30", Unit::Seconds), Some(0));
        assert_eq!(
            nanos("1700000000123", Unit::Milliseconds),
            Some(1_700_000_000_123_000_000)
        );
        assert_eq!(nanos("0.0000000019", Unit::Seconds), Some(1));
        assert_eq!(nanos("-0.0", Unit::Seconds), Some(0));
        assert_eq!(nanos("5.", Unit::Seconds), Some(5_000_000_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "-5", "NaN", "nan", "inf", "Infinity", "", ".", "1e999", "1e19", "5 s", "0x5", "1_0",
            "1.2.3", "--1",
        ] {
            assert_eq!(duration(text, Unit::Seconds), None, "{text}");
        }
    }

    #[test]
    fn times_are_written_with_the_places_they_need() {
        let written = |nanos, unit| write_duration(Duration::from_nanos(nanos), unit);
        assert_eq!(written(61_114_000_000, Unit::Seconds), "61.114");
        assert_eq!(written(3_001_000_000, Unit::Milliseconds), "3001");
        assert_eq!(written(1, Unit::Seconds), "0.000000001");
        assert_eq!(written(1, Unit::Milliseconds), "0.000001");
        assert_eq!(written(0, Unit::Seconds), "0");
    }

    #[test]
    fn counts_are_whole() {
        assert_eq!(tokens("472"), Some(472));
        assert_eq!(tokens("472.0"), Some(472));
        for text in ["", "-1", "4.5", "4.", "1e3", "4294967296", "+4", " 4"] {
            assert_eq!(tokens(text), None, "{text}");
        }
    }

    #[test]
    fn lists_of_ids_are_read_or_the_bad_one_is_named() {
        let read = |text: &str| {
            let mut list = Vec::new();
            ids(text, &mut list).map(|()| list)
        };
        assert_eq!(read("[]"), Ok(vec![]));
        assert_eq!(
            read("[ 1, 22 ,18446744073709551615]"),
            Ok(vec![1, 22, u64::MAX])
        );
        assert_eq!(read("[1,-2,3]"), Err("-2".to_owned()));
        assert_eq!(read("[1,2.5]"), Err("2.5".to_owned()));
        assert_eq!(read("[1,\"a\"]"), Err("\"a\"".to_owned()));
        assert_eq!(
            read("[18446744073709551616]"),
            Err("18446744073709551616".to_owned())
        );
        assert_eq!(read("{}"), Err("{}".to_owned()));
    }
}
