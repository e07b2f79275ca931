//! Parses the JSON of a header, in one pass, to tensors not yet checked against each other.
//!
//! The visitors borrow from the text and allocate only names and shapes. Every value is parsed,
//! those of unknown fields too, so that the parser's limit of 128 nested values and its rules for
//! numbers and strings apply everywhere, as in the reference.

mod entry;
mod metadata;
mod visit;

use std::fmt;

use serde::de::{self, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use self::entry::{Entry, EntryVisitor};
use self::metadata::MetadataVisitor;
use self::visit::{Any, Fault};
use super::declared::{Declared, DeclaredTensor};
use super::options::HeaderOptions;
use crate::format::METADATA_KEY;
use crate::limit::{Limit, LimitOn, Remedy};
use crate::quote::shortened;
use crate::{Result, reserve};

/// Parses a whole header.
pub(super) fn parse(text: &str, options: &HeaderOptions) -> Result<Declared> {
    let mut declared = Declared::for_text(text)?;
    let mut fault = Fault::default();
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_map(HeaderVisitor { declared: &mut declared, fault: &mut fault, options })
        .and_then(|()| json.end())
        .map_err(|error| fault.into_error(&error))?;
    Ok(declared)
}

/// Visits the whole header.
struct HeaderVisitor<'a> {
    declared: &'a mut Declared,
    fault: &'a mut Fault,
    options: &'a HeaderOptions,
}

impl<'de> Visitor<'de> for HeaderVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { declared, fault, options } = self;
        let mut metadata_seen = false;
        while let Some(key) = map.next_key_seed(Any(KeyVisitor { fault, options }))? {
            match key {
                Key::Metadata if metadata_seen => {
                    return Err(A::Error::duplicate_field(METADATA_KEY));
                }
                Key::Metadata => {
                    metadata_seen = true;
                    declared.metadata = map.next_value_seed(Any(MetadataVisitor(fault)))?;
                }
                Key::Tensor(_) if declared.tensors.len() >= options.max_tensors => {
                    map.next_value::<IgnoredAny>()?;
                    let others = rest(&mut map, fault, options)?;
                    let found = declared.tensors.len().saturating_add(1).saturating_add(others);
                    return Err(fault.stop(Limit {
                        what: LimitOn::Tensors,
                        limit: options.max_tensors as u64,
                        found: found as u64,
                        remedy: Some(Remedy::Raise("HeaderOptions::max_tensors")),
                    }));
                }
                Key::Tensor(name) => match map.next_value_seed(Any(EntryVisitor(fault, options))) {
                    Ok(Entry { dtype, shape, offsets }) => {
                        let tensor = DeclaredTensor { name, offsets, shape, dtype };
                        reserve::push(&mut declared.tensors, tensor)
                            .map_err(|none| fault.stop(none))?;
                    }
                    Err(error) => {
                        fault.tensor = Some(name);
                        return Err(error);
                    }
                },
            }
        }
        Ok(())
    }
}

/// The number of tensors in the rest of the header.
fn rest<'de, A: MapAccess<'de>>(
    map: &mut A,
    fault: &mut Fault,
    options: &HeaderOptions,
) -> Result<usize, A::Error> {
    let mut count = 0_usize;
    while let Some(key) = map.next_key_seed(Any(KeyVisitor { fault, options }))? {
        count = count.saturating_add(usize::from(matches!(key, Key::Tensor(_))));
        map.next_value::<IgnoredAny>()?;
    }
    Ok(count)
}

/// A key of the header, after unescaping.
enum Key {
    Metadata,
    Tensor(Box<str>),
}

struct KeyVisitor<'a> {
    fault: &'a mut Fault,
    options: &'a HeaderOptions,
}

impl Visitor<'_> for KeyVisitor<'_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tensor name")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
        if key == METADATA_KEY {
            return Ok(Key::Metadata);
        }
        let (found, max) = (key.len() as u64, self.options.max_name_bytes as u64);
        if let Err(limit) =
            Limit::check(LimitOn::NameBytes, found, max, "HeaderOptions::max_name_bytes")
        {
            self.fault.tensor = Some(shortened(key));
            return Err(self.fault.stop(limit));
        }
        reserve::boxed(key).map(Key::Tensor).map_err(|none| self.fault.stop(none))
    }
}
