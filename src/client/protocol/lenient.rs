//! JSON read leniently: what has another type than it should is absent, and spoils nothing else.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::several::Several;
use super::{Channel, Said};

/// The arms of a visitor for all that is neither an object nor a list.
macro_rules! plain_values_are {
    ($value:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($value)
        }
    };
}

/// An object of this shape.
#[derive(Debug, Default)]
pub(super) enum Maybe<T> {
    /// Null, or not there.
    #[default]
    Absent,
    /// Something that is no object.
    Odd,
    Object(T),
}

impl<T> Maybe<T> {
    pub(super) fn get(self) -> Option<T> {
        match self {
            Self::Object(value) => Some(value),
            Self::Absent | Self::Odd => None,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
            type Value = Maybe<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            plain_values_are!(Maybe::Odd);

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Maybe::Odd)
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Maybe::Absent)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Maybe::Odd)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Maybe::Object)
            }
        }
        deserializer.deserialize_any(Object(PhantomData))
    }
}

/// A list of objects of this shape, or a single one; what else stands in the list is passed over.
pub(super) type Many<T> = Several<Maybe<T>>;

impl<T> Many<T> {
    /// The objects.
    pub(super) fn objects(self) -> impl Iterator<Item = T> {
        self.into_iter().filter_map(Maybe::get)
    }
}

/// How long a list is; nothing, where none stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Length(pub(super) Option<u32>);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Length;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            plain_values_are!(Length(None));

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Length(None))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Length(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut length: u32 = 0;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    length = length.saturating_add(1);
                }
                Ok(Length(Some(length)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Length(None))
            }
        }
        deserializer.deserialize_any(List)
    }
}

/// What stands for the text of a message: a text, an object with a text in it, or a list of both.
#[derive(Debug, Default)]
pub(super) enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Part(Box<Part<'a>>),
    List(Vec<Content<'a>>),
}

/// One part of a message.
#[derive(Debug, Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    text: Content<'a>,
    #[serde(borrow, default)]
    thinking: Content<'a>,
    #[serde(borrow, default)]
    summary: Content<'a>,
    #[serde(borrow, default)]
    refusal: Content<'a>,
}

impl<'a> Content<'a> {
    /// Whether there is no text in it.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Text(text) => text.is_empty(),
            Self::Part(part) => [&part.text, &part.thinking, &part.summary, &part.refusal]
                .into_iter()
                .all(Self::is_empty),
            Self::List(list) => list.iter().all(Self::is_empty),
        }
    }

    /// Says all texts in it, as `channel` where they do not say themselves what they are.
    pub(super) fn say(self, choice: u32, channel: Channel, said: &mut Said<'a>) {
        match self {
            Self::Nothing => {}
            Self::Text(text) => said.say(choice, channel, text),
            Self::Part(part) => {
                part.thinking.say(choice, Channel::Reasoning, said);
                part.summary.say(choice, Channel::Reasoning, said);
                part.text.say(choice, channel, said);
                part.refusal.say(choice, Channel::Refusal, said);
            }
            Self::List(list) => {
                for content in list {
                    content.say(choice, channel, said);
                }
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the text of a message")
            }

            plain_values_are!(Content::Nothing);

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Content::Nothing)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(content) = list.next_element()? {
                    all.push(content);
                }
                Ok(Content::List(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let part = Part::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Content::Part(Box::new(part)))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
