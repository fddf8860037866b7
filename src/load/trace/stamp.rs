//! Instants as texts: `2023-11-16 18:15:46.6805900`, with `T` or a blank, with any number of
//! fractional digits, with `Z`, an offset, or no zone at all, which is taken as UTC.
//!
//! Only instants from 1970 on, up to the longest time that files may give as a number. Written here because libraries stop at six or nine digits, or
//! want a zone.

use std::fmt::Write as _;
use std::time::Duration;

use super::number::LONGEST;

const DAY: u64 = 86_400;

/// The instant as time since the beginning of 1970, UTC.
pub(super) fn instant(text: &str) -> Option<Duration> {
    let text = text.trim_ascii();
    let (date, rest) = text.split_at_checked(10)?;
    let mut date = date.split('-');
    let (year, month, day) = (
        digits(date.next()?, 4)?,
        digits(date.next()?, 2)?,
        digits(date.next()?, 2)?,
    );
    if date.next().is_some()
        || !(1..=12).contains(&month)
        || day < 1
        || day > month_days(year, month)
    {
        return None;
    }
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, behind) = rest.split_at_checked(8)?;
    let mut clock = clock.split(':');
    let (hour, minute, second) = (
        digits(clock.next()?, 2)?,
        digits(clock.next()?, 2)?,
        digits(clock.next()?, 2)?,
    );
    // 60 is a leap second; it becomes the second after.
    if clock.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (nanos, zone) = fraction(behind)?;
    let seconds = days(year, month, day)? * DAY + hour * 3_600 + minute * 60 + second;
    let seconds = i64::try_from(seconds).ok()? - offset(zone)?;
    let since = Duration::new(u64::try_from(seconds).ok()?, nanos);
    (since.as_nanos() <= LONGEST).then_some(since)
}

/// `.6805900+00:00` as nanoseconds and the rest.
fn fraction(text: &str) -> Option<(u32, &str)> {
    let Some(rest) = text.strip_prefix(['.', ',']) else {
        return Some((0, text));
    };
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return None;
    }
    let mut nanos = 0;
    for place in 0..9 {
        let digit = rest.as_bytes()[..length]
            .get(place)
            .map_or(0, |byte| byte - b'0');
        nanos = nanos * 10 + u32::from(digit);
    }
    Some((nanos, &rest[length..]))
}

/// Seconds east of UTC that `Z`, `+02:00`, `+0200`, `+02` or nothing say.
fn offset(zone: &str) -> Option<i64> {
    let zone = zone.trim_ascii();
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") || zone == "UTC" {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest.len() {
        2 => (rest, "00"),
        4 => rest.split_at_checked(2)?,
        5 => rest.split_once(':')?,
        _ => return None,
    };
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    i64::try_from(hours * 3_600 + minutes * 60)
        .ok()
        .map(|seconds| sign * seconds)
}

fn digits(text: &str, length: usize) -> Option<u64> {
    if text.len() != length || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn month_days(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the beginning of 1970; `None` before.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 {
        return None;
    }
    // Leap days of all years before: every fourth, less centuries, plus every fourth century.
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let whole = (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
    let months: u64 = (1..month).map(|month| month_days(year, month)).sum();
    Some(whole + months + day - 1)
}

/// The instant as `2023-11-16 18:15:46.6805900`, as Azure writes it; below 100 ns is cut.
pub(super) fn write_instant(since_1970: Duration) -> String {
    let (mut day, second) = (since_1970.as_secs() / DAY, since_1970.as_secs() % DAY);
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if day < length {
            break;
        }
        day -= length;
        year += 1;
    }
    let mut month = 1;
    while day >= month_days(year, month) {
        day -= month_days(year, month);
        month += 1;
    }
    let mut out = String::with_capacity(27);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let ticks = since_1970.subsec_nanos() / 100;
    write!(
        out,
        "{year:04}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02}.{ticks:07}",
        day + 1
    )
    .expect("writing to a string cannot fail");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<(u64, u32)> {
        instant(text).map(|time| (time.as_secs(), time.subsec_nanos()))
    }

    #[test]
    fn an_instant_is_no_later_than_a_number_of_seconds_may_be() {
        // 2^63 - 1 nanoseconds end at .854775807.
        assert_eq!(
            at("2262-04-11T23:47:16.854775807Z"),
            Some((9_223_372_036, 854_775_807))
        );
        assert_eq!(at("2262-04-11T23:47:16.854775808Z"), None);
        assert_eq!(at("3940-01-01T00:00:02.5Z"), None);
    }

    #[test]
    fn instants_are_read_in_every_way_traces_write_them() {
        // 19,677 days, from `date -u -d 2023-11-16 +%s`: 1700092800.
        let base = 1_700_092_800 + 18 * 3_600 + 15 * 60 + 46;
        assert_eq!(at("2023-11-16 18:15:46.6805900"), Some((base, 680_590_000)));
        assert_eq!(at("2023-11-16 18:15:46"), Some((base, 0)));
        assert_eq!(at("2023-11-16T18:15:46Z"), Some((base, 0)));
        assert_eq!(at("2023-11-16 18:15:46.5+00:00"), Some((base, 500_000_000)));
        assert_eq!(
            at("2023-11-16T20:15:46.123456789123+02:00"),
            Some((base, 123_456_789))
        );
        assert_eq!(at("2023-11-16 13:45:46-0430"), Some((base, 0)));
        assert_eq!(at("1970-01-01 00:00:00"), Some((0, 0)));
        assert_eq!(at("2024-02-29 00:00:00"), Some((1_709_164_800, 0)));
        assert_eq!(at("2000-03-01 00:00:00"), Some((951_868_800, 0)));
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in [
            "",
            "2023-11-16",
            "2023-11-16 18:15",
            "2023-02-29 00:00:00",
            "2023-13-01 00:00:00",
            "2023-11-16 24:00:00",
            "2023-11-16 18:15:46.",
            "2023-11-16 18:15:46 CET",
            "2023-11-16 18:15:46+1",
            "1969-12-31 23:59:59",
            "16/11/2023 18:15:46",
            "é023-11-16 18:15:46",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn instants_are_written_as_azure_does() {
        let written = |seconds, nanos| write_instant(Duration::new(seconds, nanos));
        assert_eq!(
            written(1_700_158_546, 680_590_000),
            "2023-11-16 18:15:46.6805900"
        );
        assert_eq!(written(0, 0), "1970-01-01 00:00:00.0000000");
        assert_eq!(
            written(1_709_164_799, 999_999_999),
            "2024-02-28 23:59:59.9999999"
        );
        assert_eq!(written(1_709_164_800, 0), "2024-02-29 00:00:00.0000000");
    }
}
