//! The values of an index: strings and numbers, and the kind of everything else.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tensorfile::reserve::{self, NoMemory};

/// A JSON string, borrowed from the text unless it has escapes; unescaping may fail for lack of
/// memory.
pub(super) struct Text<'a>(pub(super) Result<Cow<'a, str>, NoMemory>);

impl<'a> Deserialize<'a> for Text<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_str(ValueVisitor)? {
            Value::Text(text) => Ok(Self(Ok(text))),
            Value::NoMemory(none) => Ok(Self(Err(none))),
            Value::Number(_) | Value::Other(_) => Err(D::Error::custom("expected a string")),
        }
    }
}

/// A JSON value; only strings and numbers matter.
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    /// The text of a number.
    Number(String),
    /// The kind of any other value.
    Other(&'static str),
    /// A string with escapes that could not be allocated.
    NoMemory(NoMemory),
}

impl<'a> Deserialize<'a> for Value<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'a> Visitor<'a> for ValueVisitor {
    type Value = Value<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        let copy = reserve::boxed(text).map(|copy| Cow::Owned(copy.into()));
        Ok(copy.map_or_else(Value::NoMemory, Value::Text))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Value::Other("a boolean"))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Value::Number(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Value::Number(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Value::Number(format!("{number:?}")))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Other("null"))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other("an array"))
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other("an object"))
    }
}
