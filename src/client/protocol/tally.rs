//! What the answers of vectors and ranks have in common: a list to count, usage, errors.
//!
//! The numbers themselves are passed over, never stored: such an answer may be many megabytes
//! large, and nothing but its length and its time is wanted.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

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
pub(super) struct Count<T>(pub(super) u32, PhantomData<T>);

impl<T> Default for Count<T> {
    fn default() -> Self {
        Self(0, PhantomData)
    }
}

impl<'de, T: Answer + Deserialize<'de>> Deserialize<'de> for Count<T> {
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

/// One vector, or several, or none of these: an array that is not empty, or a text in base64.
#[derive(Default)]
pub(super) struct Vector {
    is_there: bool,
    /// It is a number by itself, so that the list around it is the vector.
    pub(super) is_number: bool,
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
        }
    }

    const NUMBER: Self = Self {
        is_there: true,
        is_number: true,
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
                Ok(Vector::of(false))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Vector, E> {
                Ok(Vector::of(false))
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

            fn visit_str<E>(self, text: &str) -> Result<Vector, E> {
                Ok(Vector::of(!text.is_empty()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vector, A::Error> {
                let mut is_there = false;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    is_there = true;
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

/// A count of tokens, however wrong it may be: it never spoils the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    count: Option<u32>,
    bad: bool,
}

impl<'de> Deserialize<'de> for Tokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Null => Self::default(),
            // Some servers count in floats.
            value => Self::counted(value.as_f64()),
        })
    }
}

impl Tokens {
    fn counted(count: Option<f64>) -> Self {
        let count = count
            .filter(|count| (0.0..=f64::from(u32::MAX)).contains(count) && count.fract() == 0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and in range, as was just checked"
        )]
        let count = count.map(|count| count as u32);
        Self {
            count,
            bad: count.is_none(),
        }
    }
}

/// `usage` of such an answer.
#[derive(Default, Deserialize)]
pub(super) struct RawUsage {
    #[serde(default)]
    prompt_tokens: Tokens,
    #[serde(default)]
    total_tokens: Tokens,
}

/// `meta` of Cohere's.
#[derive(Default, Deserialize)]
pub(super) struct Meta {
    #[serde(default)]
    tokens: Option<MetaTokens>,
    #[serde(default)]
    billed_units: Option<MetaTokens>,
}

#[derive(Default, Deserialize)]
struct MetaTokens {
    #[serde(default)]
    input_tokens: Tokens,
}

/// Tokens of the input, by whichever of `usage` and `meta` is there. Nothing is generated, so
/// all tokens are those of the input.
pub(super) fn usage(raw: Option<RawUsage>, meta: Option<Meta>) -> Option<Usage> {
    let meta = meta.unwrap_or_default();
    let from_meta = [meta.tokens, meta.billed_units]
        .into_iter()
        .flatten()
        .map(|part| part.input_tokens);
    let from_usage = raw.map(|raw| [raw.prompt_tokens, raw.total_tokens]);
    let all: Vec<Tokens> = from_usage.into_iter().flatten().chain(from_meta).collect();
    let input = all.iter().find_map(|tokens| tokens.count);
    let bad = all.iter().any(|tokens| tokens.bad);
    (input.is_some() || bad).then_some(Usage {
        input,
        bad,
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
