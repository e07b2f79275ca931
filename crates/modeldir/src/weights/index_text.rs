//! One pass over the JSON of an index: its entries in file order, and the useful part of
//! `metadata`.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod plain;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};

use tensorfile::reserve::{self, NoMemory};
use tensorfile::{MetadataBuilder, shortened};

use crate::json::{self, JsonError};
use crate::weights::shard_path;
use crate::{ErrorKind, Result};

/// The longest text in which every name has a position that fits a `u32`. A name with escapes is at
/// least as long as its unescaped form, so the unescaped names appended to the text at most double
/// it.
const MAX_BYTE_LEN: usize = u32::MAX as usize / 2;

/// The content of an index, in file order.
#[derive(Debug)]
pub(crate) struct IndexText {
    /// The pairs of the weight map. Names may repeat.
    pub(crate) entries: Vec<Entry>,
    /// Whether every name is known to be greater than the previous one.
    pub(crate) is_ascending: bool,
    /// The unescaped form of names with escapes; their ranges continue past the end of the text.
    pub(crate) unescaped: String,
    /// Shard paths, each once, in order of first mention.
    pub(crate) shards: Vec<Box<str>>,
    pub(crate) metadata: Metadata,
    pub(crate) is_bare: bool,
}

/// A tensor of the weight map.
///
/// Kept small: indexes have hundreds of thousands of them.
#[derive(Debug)]
pub(crate) struct Entry {
    name_start: u32,
    name_end: u32,
    /// The position of the shard.
    pub(crate) shard: u32,
}

impl Entry {
    /// The range of the name in the text, or past its end.
    pub(crate) fn name(&self) -> Range<usize> {
        self.name_start as usize..self.name_end as usize
    }
}

/// The entries of `metadata` that are kept.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    /// The text of the number or string.
    pub(crate) total_size: Option<Box<str>>,
    /// By key; of equal keys, the last one with a string value wins.
    pub(crate) strings: tensorfile::Metadata,
    /// The allocation that failed, if one did.
    lack: Option<NoMemory>,
}

/// Parses the text of an index; refuses shard paths of the wrong type or form.
///
/// Numbers that JSON lacks, such as `NaN`, are accepted in values that are not used.
pub(crate) fn parse(text: &str) -> Result<IndexText> {
    let is_syntax = |kind: &ErrorKind| matches!(kind, ErrorKind::Json(JsonError::Syntax { .. }));
    let error = match parse_json(text) {
        Err(error) if is_syntax(error.kind()) => error,
        done => return done,
    };
    // Memory for a second text of the same length.
    reserve::check::<u8>(text.len())?;
    let Some(blanked) = json::blank_non_finite(text) else { return Err(error) };
    match parse_json(&blanked) {
        // The value of the wrong type may be the blanked number itself.
        Err(other) if matches!(other.kind(), ErrorKind::ShardPathType { .. }) => Err(error),
        done => done,
    }
}

fn parse_json(text: &str) -> Result<IndexText> {
    if text.len() > MAX_BYTE_LEN {
        let message = format!("an index of {} bytes, {MAX_BYTE_LEN} can be read", text.len());
        return Err(JsonError::Syntax { line: 1, column: 1, message: message.into() }.into());
    }
    let json = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document = match plain::parse(text) {
        Some(document) => document,
        None => read_any(text, json).map_err(|error| json_error(json, &error))?,
    };
    // A failed allocation is the error: a partly stored text is not judged.
    let document = complete(document.lack(), document)?;
    let (pairs, is_bare) = match document.weight_map {
        Some(pairs) => (pairs, false),
        None => (bare_pairs(text, json)?, true),
    };
    let metadata = document.metadata;
    if let Some((tensor, fault)) = pairs.fault {
        let kind = match fault {
            Fault::Type(found) => ErrorKind::ShardPathType { found: found.into() },
            Fault::Path(value, reason) => ErrorKind::ShardPath { value, reason },
        };
        return Err(kind.in_tensor(&tensor));
    }
    let Pairs { entries, is_ascending, unescaped, shards, .. } = pairs;
    Ok(IndexText { entries, is_ascending, unescaped, shards, metadata, is_bare })
}

/// The pairs of a document that is a weight map as a whole.
fn bare_pairs<'a>(text: &'a str, json: &'a str) -> Result<Pairs<'a>> {
    let pairs =
        read(json, PairsSeed { text, is_bare: true }).map_err(|_| ErrorKind::NoWeightMap)?;
    let pairs = complete(pairs.lack, pairs)?;
    if pairs.can_be_bare() { Ok(pairs) } else { Err(ErrorKind::NoWeightMap.into()) }
}

/// The value read, or an error if an allocation failed meanwhile.
fn complete<T>(lack: Option<NoMemory>, read: T) -> Result<T> {
    lack.map_or(Ok(read), |none| Err(none.into()))
}

/// Reads an index in any form; `json` is the text without its byte-order mark.
fn read_any<'a>(text: &'a str, json: &'a str) -> serde_json::Result<Document<'a>> {
    // The second reading skips `metadata`, which may be anything and must not cause a failure.
    read(json, DocumentSeed { text, skips_metadata: false })
        .or_else(|_| read(json, DocumentSeed { text, skips_metadata: true }))
}

/// Deserializes a whole JSON text.
fn read<'a, S: DeserializeSeed<'a>>(json: &'a str, seed: S) -> serde_json::Result<S::Value> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Converts an error of the parser, with a hint if the line is a git conflict marker.
fn json_error(json: &str, error: &serde_json::Error) -> JsonError {
    let error = json::syntax_error(json, json, error);
    let (line, column, what) = match &error {
        JsonError::Syntax { line, column, message } => (*line, *column, &**message),
        JsonError::NotJson { line, column, .. } => (*line, *column, "not JSON"),
        _ => return error,
    };
    let at = json.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    if !["<<<<<<<", "=======", ">>>>>>>"].iter().any(|mark| at.starts_with(mark)) {
        return error;
    }
    let message = format!("{what} (an unresolved merge conflict)").into();
    JsonError::Syntax { line, column, message }
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

/// The used keys of an index.
#[derive(Default)]
struct Document<'a> {
    weight_map: Option<Pairs<'a>>,
    metadata: Metadata,
    /// The failed allocation for a key.
    lack: Option<NoMemory>,
}

impl Document<'_> {
    /// The first failed allocation, if any.
    fn lack(&self) -> Option<NoMemory> {
        let of_pairs = self.weight_map.as_ref().and_then(|pairs| pairs.lack);
        self.lack.or(of_pairs).or(self.metadata.lack)
    }
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

/// The pairs of a weight map while they are read.
struct Pairs<'a> {
    text: &'a str,
    entries: Vec<Entry>,
    /// Whether every name is known to be greater than the previous one.
    is_ascending: bool,
    unescaped: String,
    shards: Vec<Box<str>>,
    /// The position of a shard by each spelling seen so far.
    positions: HashMap<Cow<'a, str>, u32>,
    /// The previous spelling; in most indexes the next one is the same.
    last: Option<(Cow<'a, str>, u32)>,
    /// The fault of the first faulty tensor by name.
    fault: Option<(Box<str>, Fault)>,
    /// The first failed allocation; pairs after it are dropped.
    lack: Option<NoMemory>,
}

/// What can be wrong with the value of a pair.
enum Fault {
    /// It is not a string but this.
    Type(&'static str),
    /// It is a path that is not allowed, with the reason.
    Path(Box<str>, &'static str),
}

impl<'a> Pairs<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            entries: Vec::new(),
            is_ascending: false,
            unescaped: String::new(),
            shards: Vec::new(),
            positions: HashMap::new(),
            last: None,
            fault: None,
            lack: None,
        }
    }

    /// Whether a document of only these pairs is a weight map.
    fn can_be_bare(&self) -> bool {
        match &self.fault {
            None => !self.entries.is_empty(),
            Some((_, Fault::Type(_))) => false,
            Some((_, Fault::Path(value, _))) => value.ends_with(shard_path::EXTENSION),
        }
    }

    /// Adds a pair, unless an allocation has failed before.
    fn push(&mut self, name: Result<Cow<'a, str>, NoMemory>, value: Value<'a>) {
        if self.lack.is_none() {
            self.lack = name.and_then(|name| self.try_push(&name, value)).err();
        }
    }

    fn try_push(&mut self, name: &str, value: Value<'a>) -> Result<(), NoMemory> {
        let shard = match value {
            Value::Text(shard) => self.position(shard)?,
            Value::Number(_) => Err(Fault::Type("a number")),
            Value::Other(found) => Err(Fault::Type(found)),
            Value::NoMemory(none) => return Err(none),
        };
        match shard {
            Ok(shard) => {
                let name = self.place(name)?;
                self.add_entry(name, shard)?;
            }
            Err(fault) => {
                if self.fault.as_ref().is_none_or(|(first, _)| *name < **first) {
                    self.fault = Some((reserve::boxed(name)?, fault));
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn add_entry(&mut self, name: Range<usize>, shard: u32) -> Result<(), NoMemory> {
        let (name_start, name_end) = (saturated(name.start), saturated(name.end));
        reserve::push(&mut self.entries, Entry { name_start, name_end, shard })
    }

    /// The position of a shard, or what is wrong with its path. A new path gets a new position.
    fn position(&mut self, shard: Cow<'a, str>) -> Result<Result<u32, Fault>, NoMemory> {
        if let Some((last, position)) = &self.last {
            if *last == shard {
                return Ok(Ok(*position));
            }
        }
        let position = match self.positions.get(&shard) {
            Some(position) => *position,
            None => {
                let path = match shard_path::normalise(&shard) {
                    Ok(path) => path,
                    Err(reason) => return Ok(Err(Fault::Path(shortened(&shard), reason))),
                };
                let position = self.add(&path, &shard)?;
                self.insert(shard.clone(), position)?;
                position
            }
        };
        self.last = Some((shard, position));
        Ok(Ok(position))
    }

    /// The position of a path in a new spelling; a new path is added.
    fn add(&mut self, path: &str, spelling: &str) -> Result<u32, NoMemory> {
        if let Some(position) = self.positions.get(path) {
            return Ok(*position);
        }
        let position = saturated(self.shards.len());
        if path != spelling {
            self.insert(Cow::Owned(path.to_owned()), position)?;
        }
        reserve::push(&mut self.shards, reserve::boxed(path)?)?;
        Ok(position)
    }

    /// Stores a spelling.
    fn insert(&mut self, spelling: Cow<'a, str>, position: u32) -> Result<(), NoMemory> {
        let asked = self.positions.try_reserve(1);
        // A full map doubles its capacity.
        let more = self.positions.len().saturating_mul(2);
        let byte_len = more.saturating_mul(size_of::<(Cow<'a, str>, u32)>());
        asked.map_err(|_| NoMemory(byte_len))?;
        self.positions.insert(spelling, position);
        Ok(())
    }

    /// The range of a name in the text. A name with escapes is not in the text in this form and is
    /// appended to `unescaped`.
    fn place(&mut self, name: &str) -> Result<Range<usize>, NoMemory> {
        let offset = name.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        let range = offset..offset.wrapping_add(name.len());
        let is_borrowed = |part: &&str| part.as_ptr() == name.as_ptr();
        if self.text.get(range.clone()).filter(is_borrowed).is_some() {
            return Ok(range);
        }
        let start = self.text.len().saturating_add(self.unescaped.len());
        reserve::push_str(&mut self.unescaped, name)?;
        Ok(start..start.saturating_add(name.len()))
    }
}

/// A position in a text of at most [`MAX_BYTE_LEN`] bytes, or a number of items in it.
#[inline]
fn saturated(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
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

/// A JSON string, borrowed from the text unless it has escapes; unescaping may fail for lack of
/// memory.
struct Text<'a>(Result<Cow<'a, str>, NoMemory>);

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
enum Value<'a> {
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

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::path::Path;

    use tensorfile::reserve::NoMemory;

    use super::{Document, Metadata, Pairs, Value, bare_pairs, complete};
    use crate::ErrorKind;

    const NONE: NoMemory = NoMemory(7);

    /// Pairs whose last one could not be allocated.
    fn broken_off(
        name: Result<Cow<'static, str>, NoMemory>,
        value: Value<'static>,
    ) -> Pairs<'static> {
        let mut pairs = Pairs::new("");
        pairs.push(Ok("a".into()), Value::Text("a.safetensors".into()));
        pairs.push(name, value);
        pairs.push(Ok("b".into()), Value::Other("null"));
        assert!(pairs.entries.len() == 1 && pairs.fault.is_none() && pairs.lack == Some(NONE));
        pairs
    }

    #[test]
    fn a_lack_of_memory_is_the_error_whatever_else_could_be_said() {
        let text = Value::Text("b.safetensors".into());
        let of_name = Some(broken_off(Err(NONE), text));
        let of_value = Some(broken_off(Ok("b".into()), Value::NoMemory(NONE)));
        let metadata = Metadata { lack: Some(NONE), ..Metadata::default() };
        for document in [
            Document { weight_map: of_name, ..Document::default() },
            Document { weight_map: of_value, ..Document::default() },
            Document { metadata, ..Document::default() },
            Document { lack: Some(NONE), ..Document::default() },
        ] {
            let error = complete(document.lack(), document).map(drop).unwrap_err().at("i");
            assert_eq!(error.path(), Some(Path::new("i")));
            assert_eq!(error.to_string(), "i: no memory for 7 bytes");
            let kind = error.kind();
            assert!(
                matches!(kind, ErrorKind::File(tensorfile::ErrorKind::OutOfMemory { byte_len: 7 })),
                "{kind:?}"
            );
        }
        assert!(complete(None, Document::default()).is_ok());
    }

    #[test]
    fn a_document_that_is_no_map_as_a_whole_has_none() {
        for (text, is_map) in [(r#"{"a": "m.safetensors"}"#, true), (r#"{"a": 1}"#, false)] {
            assert_eq!(bare_pairs(text, text).is_ok(), is_map, "{text}");
        }
    }
}
