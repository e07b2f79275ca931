//! The value of `__metadata__`: an object of strings.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

use super::visit::{Any, Fault};
use crate::format::METADATA_KEY;
use crate::header::metadata::{Metadata, MetadataBuilder, Twice};
use crate::quote::shortened;
use crate::reserve::{self, NoMemory};
use crate::{ErrorKind, Result};

/// Visits the metadata; `null` counts as no metadata.
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
        let (mut metadata, mut keys) = (MetadataBuilder::default(), Keys::default());
        while let Some(key) = map.next_key_seed(Any(TextVisitor))? {
            let key = match key {
                Text::Is(key) => key,
                Text::NoMemory(none) => return Err(self.0.stop(none)),
                Text::IsNot(_) => Cow::default(),
            };
            keys.add(&key);
            let added = match map.next_value_seed(Any(TextVisitor))? {
                Text::Is(text) => metadata.push(&key, &text),
                Text::NoMemory(none) => Err(none),
                Text::IsNot(found) => {
                    if keys.with_rest_of(map).are_of_tensor() {
                        self.0.tensor = Some(METADATA_KEY.into());
                        return Err(self.0.stop(ErrorKind::ReservedName));
                    }
                    let key = shortened(&key);
                    return Err(self.0.stop(ErrorKind::MetadataNotString { key, found }));
                }
            };
            added.map_err(|none| self.0.stop(none))?;
        }
        let twice = |Twice(key)| self.0.stop(ErrorKind::DuplicateMetadataKey { key });
        metadata.finish().map(Some).map_err(twice)
    }
}

/// Which keys the metadata has: those of a tensor's entry show that a tensor has its name.
#[derive(Default)]
struct Keys {
    /// Of `dtype`, `shape` and `data_offsets`, those present.
    of_tensor: [bool; 3],
    others: bool,
}

impl Keys {
    fn add(&mut self, key: &str) {
        let names = ["dtype", "shape", "data_offsets"].into_iter();
        match names.zip(&mut self.of_tensor).find(|(name, _)| *name == key) {
            Some((_, present)) => *present = true,
            None => self.others = true,
        }
    }

    /// Adds the keys that follow, as far as they are well formed.
    fn with_rest_of<'de, A: MapAccess<'de>>(mut self, mut map: A) -> Self {
        while let Ok(Some(Text::Is(key))) = map.next_key_seed(Any(TextVisitor)) {
            if map.next_value::<IgnoredAny>().is_err() {
                break;
            }
            self.add(&key);
        }
        self
    }

    fn are_of_tensor(&self) -> bool {
        !self.others && self.of_tensor == [true; 3]
    }
}

/// Visits a key, or a value that should be a string, and reports any other type.
struct TextVisitor;

/// A string, borrowed unless it had escapes.
enum Text<'de> {
    Is(Cow<'de, str>),
    /// It has another type, which this names.
    IsNot(Box<str>),
    /// There is not enough memory for it.
    NoMemory(NoMemory),
}

fn other<'de, E>(found: Unexpected<'_>) -> Result<Text<'de>, E> {
    Ok(Text::IsNot(found.to_string().into()))
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text::Is(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(reserve::boxed(text)
            .map_or_else(Text::NoMemory, |text| Text::Is(Cow::Owned(text.into()))))
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
