//! One value, or an array of them, where servers differ in which they send. Null and plain values are none.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Some values; one alone takes no allocation.
#[derive(Debug)]
pub(super) struct Several<T> {
    one: Option<T>,
    more: Vec<T>,
}

impl<T> Default for Several<T> {
    fn default() -> Self {
        Self {
            one: None,
            more: Vec::new(),
        }
    }
}

impl<T> Several<T> {
    fn one(value: T) -> Self {
        Self {
            one: Some(value),
            more: Vec::new(),
        }
    }
}

impl<T> IntoIterator for Several<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.one.into_iter().chain(self.more)
    }
}

struct Collect<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Collect<T> {
    type Value = Several<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or an array of values")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Several::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Several::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Several::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Several::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Several::default())
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        T::deserialize(BorrowedStrDeserializer::new(text)).map(Several::one)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        T::deserialize(StrDeserializer::new(text)).map(Several::one)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Several::one)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        let mut several = Several {
            one: values.next_element()?,
            more: Vec::new(),
        };
        while let Some(value) = values.next_element()? {
            several.more.push(value);
        }
        Ok(several)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Several<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Collect(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::super::text::Text;
    use super::*;

    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        name: Text<'a>,
    }

    #[test]
    fn one_and_many_and_none_are_read() {
        for (json, expected) in [
            ("\"a\"", vec!["a"]),
            ("\"\\u00e9\"", vec!["é"]),
            ("[\"a\",\"b\",\"c\"]", vec!["a", "b", "c"]),
            ("[]", vec![]),
            ("null", vec![]),
            ("7", vec![]),
        ] {
            let texts: Several<Text<'_>> = serde_json::from_str(json).expect("good");
            let texts: Vec<Cow<'_, str>> = texts.into_iter().map(|text| text.0).collect();
            assert_eq!(texts, expected, "{json}");
        }
        for (json, expected) in [
            (r#"{"name":"a","x":1}"#, vec!["a"]),
            (r#"[{"name":"a"},{"name":"b"}]"#, vec!["a", "b"]),
        ] {
            let several: Several<Named<'_>> = serde_json::from_str(json).expect("good");
            let names: Vec<Cow<'_, str>> = several.into_iter().map(|one| one.name.0).collect();
            assert_eq!(names, expected, "{json}");
            let borrowed = names.iter().all(|name| matches!(name, Cow::Borrowed(_)));
            assert!(borrowed, "no copy where there is no escape");
        }
    }
}
