//! A count in a response, read whatever it looks like.
//!
//! A negative, broken or absurd number must not cost the event that carries it: such a count is
//! absent, and marked as bad so that the record can say so. Null equals absent.

use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::value::RawValue;

use super::Usage;

/// A number of tokens as a server gave it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// `None` where there is none, or one that cannot be.
    pub(super) value: Option<u32>,
    /// Something was there that is no number of tokens.
    pub(super) bad: bool,
}

impl Count {
    const BAD: Self = Self {
        value: None,
        bad: true,
    };

    /// The JSON value `text`. A whole number may be written with a fraction of zero.
    fn of(text: &str) -> Self {
        let known = |value| Self {
            value: Some(value),
            bad: false,
        };
        if text == "null" {
            return Self::default();
        }
        if let Ok(value) = text.parse() {
            return known(value);
        }
        match text.parse::<f64>() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole and within the range"
            )]
            Ok(value) if (0.0..=f64::from(u32::MAX)).contains(&value) && is_whole(value) => {
                known(value as u32)
            }
            _ => Self::BAD,
        }
    }

    /// The sum of two parts of which one may be absent.
    pub(super) fn plus(self, other: Self) -> Self {
        let bad = self.bad || other.bad;
        match (self.value, other.value) {
            _ if bad => Self::BAD,
            (Some(a), Some(b)) => a.checked_add(b).map_or(Self::BAD, |sum| Self {
                value: Some(sum),
                bad: false,
            }),
            (a, b) => Self {
                value: a.or(b),
                bad: false,
            },
        }
    }

    /// What is left without a part of it; `None` unless both are known.
    pub(super) fn minus(self, part: Self) -> Self {
        let difference = |whole: u32| part.value.and_then(|part| whole.checked_sub(part));
        Self {
            value: self.value.and_then(difference),
            bad: self.bad || part.bad,
        }
    }

    /// This one unless it is zero: where a count of nothing cannot be.
    pub(super) fn positive(self) -> Self {
        Self {
            value: self.value.filter(|count| *count > 0),
            bad: self.bad,
        }
    }

    /// This one, or `other` where nothing usable is here.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            value: self.value.or(other.value),
            bad: self.bad || other.bad,
        }
    }
}

impl From<usize> for Count {
    fn from(count: usize) -> Self {
        u32::try_from(count).map_or(Self::BAD, |value| Self {
            value: Some(value),
            bad: false,
        })
    }
}

fn is_whole(value: f64) -> bool {
    value.fract().abs() < f64::EPSILON
}

impl<'de> Deserialize<'de> for Count {
    /// Takes any JSON value, but only from a text that can be borrowed from.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        Ok(Self::of(raw.get()))
    }
}

/// A count, or a list of counts that are added up: a tensor with an element for each answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Total(pub(super) Count);

impl<'de> Deserialize<'de> for Total {
    /// Takes any JSON value, as [`Count`] does.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        let total = match serde_json::from_str::<Vec<Count>>(raw.get()) {
            Ok(counts) => counts.into_iter().fold(Count::default(), Count::plus),
            Err(_) => Count::of(raw.get()),
        };
        Ok(Self(total))
    }
}

impl Usage {
    /// The usage made of these counts.
    pub(super) fn of(input: Count, output: Count, reasoning: Count, cached: Count) -> Self {
        Self {
            input: input.value,
            output: output.value,
            reasoning: reasoning.value,
            cached: cached.value,
            bad: input.bad || output.bad || reasoning.bad || cached.bad,
        }
    }

    /// What is known after this usage and an `earlier` one of the same response: some servers
    /// count the prompt in their first event and the answer in their last.
    pub(in crate::client) fn over(self, earlier: Option<Self>) -> Self {
        let earlier = earlier.unwrap_or_default();
        Self {
            input: self.input.or(earlier.input),
            output: self.output.or(earlier.output),
            reasoning: self.reasoning.or(earlier.reasoning),
            cached: self.cached.or(earlier.cached),
            bad: self.bad || earlier.bad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(value: u32) -> Count {
        Count {
            value: Some(value),
            bad: false,
        }
    }

    #[test]
    fn any_json_value_is_a_count_or_a_bad_one() {
        for (json, expected) in [
            ("0", known(0)),
            ("7", known(7)),
            ("4294967295", known(u32::MAX)),
            ("5.0", known(5)),
            ("1e2", known(100)),
            ("null", Count::default()),
            ("-1", Count::BAD),
            ("2.5", Count::BAD),
            ("4294967296", Count::BAD),
            ("1e999", Count::BAD),
            ("99999999999999999999999999", Count::BAD),
            ("\"12\"", Count::BAD),
            ("true", Count::BAD),
            ("[1]", Count::BAD),
            ("{\"a\":1}", Count::BAD),
        ] {
            let count: Count = serde_json::from_str(json).expect("any JSON value");
            assert_eq!(count, expected, "{json}");
        }
    }

    #[test]
    fn later_usage_completes_an_earlier_one() {
        let absent = Count::default();
        let start = Usage::of(known(9), absent, absent, known(4));
        let end = Usage::of(absent, known(3), absent, Count::BAD);
        let both = end.over(Some(start));
        assert_eq!((both.input, both.output), (Some(9), Some(3)));
        assert_eq!((both.reasoning, both.cached), (None, Some(4)));
        assert!(both.bad);
        assert_eq!(start.over(None), start);
    }

    #[test]
    fn a_sum_needs_one_part_and_bears_no_bad_one() {
        let absent = Count::default();
        assert_eq!(known(2).plus(known(3)), known(5));
        assert_eq!(known(2).plus(absent), known(2));
        assert_eq!(absent.plus(absent), absent);
        assert_eq!(known(2).plus(Count::BAD), Count::BAD);
        assert_eq!(known(u32::MAX).plus(known(1)), Count::BAD);
    }
}
