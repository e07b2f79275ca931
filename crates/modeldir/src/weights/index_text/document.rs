//! The general parser of an index: any JSON text, with errors.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use tensorfile::reserve::NoMemory;

use super::metadata::Metadata;
use super::pairs::Pairs;
use super::value::{Text, Value};

/// The used keys of an index.
#[derive(Default)]
pub(super) struct Document<'a> {
    pub(super) weight_map: Option<Pairs<'a>>,
    pub(super) metadata: Metadata,
    /// The failed allocation for a key.
    pub(super) lack: Option<NoMemory>,
}

impl Document<'_> {
    /// The first failed allocation, if any.
    pub(super) fn lack(&self) -> Option<NoMemory> {
        let of_pairs = self.weight_map.as_ref().and_then(|pairs| pairs.lack);
        self.lack.or(of_pairs).or(self.metadata.lack)
    }
}

/// Reads an index in any form; `json` is the text without its byte-order mark.
pub(super) fn read_any<'a>(text: &'a str, json: &'a str) -> serde_json::Result<Document<'a>> {
    // The second reading skips `metadata`, which may be anything and must not cause a failure.
    read(json, DocumentSeed { text, skips_metadata: false })
        .or_else(|_| read(json, DocumentSeed { text, skips_metadata: true }))
}

/// Reads a document that is a weight map as a whole.
pub(super) fn read_bare<'a>(text: &'a str, json: &'a str) -> serde_json::Result<Pairs<'a>> {
    read(json, PairsSeed { text, is_bare: true })
}

/// Deserializes a whole JSON text.
fn read<'a, S: DeserializeSeed<'a>>(json: &'a str, seed: S) -> serde_json::Result<S::Value> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Reads the top-level object of an index. It holds the whole text, since names are kept as ranges
/// in it.
struct DocumentSeed<'a> {
    text: &'a str,
    skips_metadata: bool,
}

impl<'a> DeserializeSeed<'a> for DocumentSeed<'a> {
    type Value = Document<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for DocumentSeed<'a> {
    type Value = Document<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an index: an object with the key weight_map")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut document = Document::default();
        while let Some(Text(key)) = map.next_key()? {
            let key = key.unwrap_or_else(|none| {
                document.lack = Some(none);
                Cow::default()
            });
            match key.as_ref() {
                "weight_map" if document.weight_map.is_some() => {
                    return Err(A::Error::custom("weight_map is given twice"));
                }
                "weight_map" => {
                    let seed = PairsSeed { text: self.text, is_bare: false };
                    document.weight_map = Some(map.next_value_seed(seed)?);
                }
                "metadata" if !self.skips_metadata => document.metadata = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(document)
    }
}

/// Reads a map from tensors to shards.
struct PairsSeed<'a> {
    text: &'a str,
    /// Whether the map is the whole document; if so, a `metadata` that is not a string is skipped.
    is_bare: bool,
}

impl<'a> DeserializeSeed<'a> for PairsSeed<'a> {
    type Value = Pairs<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for PairsSeed<'a> {
    type Value = Pairs<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("weight_map: an object from tensor names to shard paths")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Pairs::new(self.text);
        while let Some((Text(name), value)) = map.next_entry()? {
            let is_metadata = name.as_ref().is_ok_and(|name| *name == "metadata");
            let is_text = matches!(value, Value::Text(_) | Value::NoMemory(_));
            if self.is_bare && is_metadata && !is_text {
                continue;
            }
            pairs.push(name, value);
        }
        Ok(pairs)
    }
}
