//! The value of `__metadata__`: an object of strings.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

use super::{Any, Fault, FaultKind};
use crate::Result;
use crate::quote::shortened;

/// Visits the metadata; `null` is the same as none.
pub(super) struct MetadataVisitor<'a>(pub(super) &'a mut Fault);

impl<'de> Visitor<'de> for MetadataVisitor<'_> {
    type Value = Option<BTreeMap<String, String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata as an object of strings")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut metadata = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            if metadata.contains_key(&key) {
                return Err(self.0.stop(FaultKind::DuplicateKey(shortened(&key))));
            }
            match map.next_value_seed(Any(TextVisitor))? {
                Ok(text) => metadata.insert(key, text),
                Err(found) => {
                    return Err(self.0.stop(FaultKind::NotAString { key: shortened(&key), found }));
                }
            };
        }
        Ok(Some(metadata))
    }
}

/// Visits a value that should be a string, and says what else it is.
struct TextVisitor;

type Text = Result<String, Box<str>>;

fn other<E>(found: Unexpected<'_>) -> Result<Text, E> {
    Ok(Err(found.to_string().into()))
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Ok(text.into()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Text, E> {
        other(Unexpected::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Text, E> {
        other(Unexpected::Signed(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Text, E> {
        other(Unexpected::Unsigned(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Text, E> {
        other(Unexpected::Float(value))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Text, E> {
        other(Unexpected::Other("null"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Text, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        other(Unexpected::Other("an array"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        other(Unexpected::Other("an object"))
    }
}
