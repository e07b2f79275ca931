//! The part of an index's `metadata` that is kept.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use tensorfile::reserve::NoMemory;
use tensorfile::{MetadataBuilder, shortened};

use super::value::{Text, Value};

/// The entries of `metadata` that are kept.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    /// The text of the number or string.
    pub(crate) total_size: Option<Box<str>>,
    /// By key; of equal keys, the last one with a string value wins.
    pub(crate) strings: tensorfile::Metadata,
    /// The allocation that failed, if one did.
    pub(super) lack: Option<NoMemory>,
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataVisitor)
    }
}

struct MetadataVisitor;

impl<'de> Visitor<'de> for MetadataVisitor {
    type Value = Metadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata: an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata, A::Error> {
        let (mut total_size, mut lack) = (None, None);
        let mut strings = MetadataBuilder::default();
        while let Some((Text(key), value)) = map.next_entry()? {
            let added = match (key, value) {
                (Err(none), _) | (_, Value::NoMemory(none)) => Err(none),
                (Ok(key), value) if key == "total_size" => {
                    total_size = match value {
                        Value::Text(text) => Some(shortened(&text)),
                        Value::Number(number) => Some(number.into()),
                        Value::Other(_) | Value::NoMemory(_) => None,
                    };
                    Ok(())
                }
                (Ok(key), Value::Text(text)) if lack.is_none() => strings.push(&key, &text),
                (Ok(_), _) => Ok(()),
            };
            lack = lack.or(added.err());
        }
        Ok(Metadata { total_size, strings: strings.finish_with_last(), lack })
    }
}
