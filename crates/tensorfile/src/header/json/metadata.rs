//! The value of `__metadata__`: an object of strings.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

use super::{Any, Fault, FaultKind};
use crate::Result;
use crate::header::metadata::{Metadata, MetadataBuilder, Twice};
use crate::quote::shortened;

/// Visits the metadata; `null` is the same as none.
pub(super) struct MetadataVisitor<'a>(pub(super) &'a mut Fault);

impl<'de> Visitor<'de> for MetadataVisitor<'_> {
    type Value = Option<Metadata>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata as an object of strings")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut metadata = MetadataBuilder::default();
        while let Some(key) = map.next_key_seed(Any(TextVisitor))? {
            let key = key.unwrap_or_default();
            match map.next_value_seed(Any(TextVisitor))? {
                Ok(text) => {
                    metadata
                        .push(&key, &text)
                        .map_err(|none| self.0.stop(FaultKind::NoRoom(none)))?;
                }
                Err(found) => {
                    return Err(self.0.stop(FaultKind::NotAString { key: shortened(&key), found }));
                }
            }
        }
        let twice = |Twice(key)| self.0.stop(FaultKind::DuplicateKey(key));
        metadata.finish().map(Some).map_err(twice)
    }
}

/// Visits a key, or a value that should be a string, and says what else it is.
struct TextVisitor;

type Text<'de> = Result<Cow<'de, str>, Box<str>>;

fn other<'de, E>(found: Unexpected<'_>) -> Result<Text<'de>, E> {
    Ok(Err(found.to_string().into()))
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Ok(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Ok(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        other(Unexpected::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        other(Unexpected::Signed(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        other(Unexpected::Unsigned(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        other(Unexpected::Float(value))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        other(Unexpected::Other("null"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        other(Unexpected::Other("an array"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        other(Unexpected::Other("an object"))
    }
}
