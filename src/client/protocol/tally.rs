//! What the answers of vectors and ranks have in common: a list to count, usage, errors.
//!
//! The numbers themselves are passed over, never stored: such an answer may be many megabytes
//! large, and nothing but its length and its time is wanted.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::count::Count;
use super::lenient::Maybe;
use super::{Said, Usage, error_in, request_error};
use crate::client::framing::Event;

/// An error message is looked for in bodies up to this size; servers write far shorter ones.
const MAX_ERROR: usize = 64 * 1024;

/// An element of a list that may be an answer.
pub(super) trait Answer {
    /// Whether there is something in it.
    fn is_answer(&self) -> bool;
}

/// How many elements of a list are answers.
pub(super) struct Answers<T>(pub(super) u32, PhantomData<T>);

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self(0, PhantomData)
    }
}

impl<'de, T: Answer + Deserialize<'de>> Deserialize<'de> for Answers<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T>(PhantomData<T>);
        impl<'de, T: Answer + Deserialize<'de>> Visitor<'de> for Elements<T> {
            type Value = u32;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of answers")
            }

            fn visit_unit<E>(self) -> Result<u32, E> {
                Ok(0)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u32, A::Error> {
                let mut count = 0_u32;
                while let Some(element) = list.next_element::<T>()? {
                    count = count.saturating_add(u32::from(element.is_answer()));
                }
                Ok(count)
            }
        }
        deserializer
            .deserialize_any(Elements(PhantomData::<T>))
            .map(|count| Self(count, PhantomData))
    }
}

/// One vector, or several, or none of these: an array of numbers or of vectors that is not empty,
/// or a text in base64. An array of anything else is no answer of these protocols.
#[derive(Default)]
pub(super) struct Vector {
    is_there: bool,
    /// It is a number by itself, so that the list around it is the vector.
    pub(super) is_number: bool,
    /// It stands where a vector can and is none, nor a number.
    pub(super) is_odd: bool,
}

impl Answer for Vector {
    fn is_answer(&self) -> bool {
        self.is_there
    }
}

impl Vector {
    const fn of(is_there: bool) -> Self {
        Self {
            is_there,
            is_number: false,
            is_odd: false,
        }
    }

    const NUMBER: Self = Self {
        is_there: true,
        is_number: true,
        is_odd: false,
    };

    const ODD: Self = Self {
        is_there: false,
        is_number: false,
        is_odd: true,
    };
}

impl<'de> Deserialize<'de> for Vector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PassOver;
        impl<'de> Visitor<'de> for PassOver {
            type Value = Vector;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a vector")
            }

            fn visit_unit<E>(self) -> Result<Vector, E> {
                Ok(Vector::ODD)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Vector, E> {
                Ok(Vector::ODD)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Vector, E> {
                Ok(Vector::NUMBER)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Vector, E> {
                Ok(Vector::NUMBER)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Vector, E> {
                Ok(Vector::NUMBER)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Vector, E> {
                if is_base64(text.as_bytes()) {
                    Ok(Vector::of(!text.is_empty()))
                } else {
                    Err(E::custom("a vector in a text is not valid base64"))
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vector, A::Error> {
                let mut is_there = false;
                while let Some(element) = list.next_element::<Vector>()? {
                    if element.is_odd {
                        return Err(A::Error::custom(
                            "a vector holds something else than numbers",
                        ));
                    }
                    is_there |= element.is_there;
                }
                Ok(Vector::of(is_there))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vector, A::Error> {
                let mut is_there = false;
                while let Some((_, inner)) = map.next_entry::<IgnoredAny, Vector>()? {
                    is_there |= inner.is_there;
                }
                Ok(Vector::of(is_there))
            }
        }
        deserializer.deserialize_any(PassOver)
    }
}

/// Whether `text` is base64 with its padding (RFC 4648).
fn is_base64(text: &[u8]) -> bool {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let (digits, _) = text.split_at(text.len() - padding);
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && padding <= 2 && digits.iter().all(is_digit)
}

/// `usage` of such an answer.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawUsage {
    prompt_tokens: Count,
    total_tokens: Count,
}

/// `meta` of Cohere's.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta {
    tokens: Maybe<MetaTokens>,
    billed_units: Maybe<MetaTokens>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MetaTokens {
    input_tokens: Count,
}

/// Tokens of the input, by whichever of `usage` and `meta` is there. Nothing is generated, so
/// all tokens are those of the input.
pub(super) fn usage(raw: Maybe<RawUsage>, meta: Maybe<Meta>) -> Option<Usage> {
    let is_odd = matches!(raw, Maybe::Odd);
    let raw = raw.get().unwrap_or_default();
    let meta = meta.get().unwrap_or_default();
    let in_meta = |part: Maybe<MetaTokens>| part.get().unwrap_or_default().input_tokens;
    let counts = [
        raw.prompt_tokens,
        raw.total_tokens,
        in_meta(meta.tokens),
        in_meta(meta.billed_units),
    ];
    let input = counts.into_iter().fold(Count::default(), Count::or);
    (input != Count::default() || is_odd).then_some(Usage {
        input: input.value,
        bad: input.bad || is_odd,
        ..Usage::default()
    })
}

/// Whether an answer is a bare array.
pub(super) fn is_list(event: Event<'_>) -> bool {
    event.data.trim_ascii_start().first() == Some(&b'[')
}

/// Notes the error that the body holds, in whichever shape.
pub(super) fn note_error(event: Event<'_>, said: &mut Said<'_>) -> Result<(), serde_json::Error> {
    said.error = if event.data.len() > MAX_ERROR {
        Some(request_error("error", "an error in a very long answer"))
    } else {
        error_in(&serde_json::from_slice(event.data)?)
    };
    Ok(())
}
