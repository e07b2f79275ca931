//! The pairs of a weight map in file order: names as ranges of the text, shards by number.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use tensorfile::reserve::{self, NoMemory};
use tensorfile::shortened;

use super::value::Value;
use crate::weights::shard_path;

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

/// The pairs of a weight map while they are read.
pub(super) struct Pairs<'a> {
    text: &'a str,
    pub(super) entries: Vec<Entry>,
    /// Whether every name is known to be greater than the previous one.
    pub(super) is_ascending: bool,
    pub(super) unescaped: String,
    pub(super) shards: Vec<Box<str>>,
    /// The position of a shard by each spelling seen so far.
    positions: HashMap<Cow<'a, str>, u32>,
    /// The previous spelling; in most indexes the next one is the same.
    last: Option<(Cow<'a, str>, u32)>,
    /// The fault of the first faulty tensor by name.
    pub(super) fault: Option<(Box<str>, Fault)>,
    /// The first failed allocation; pairs after it are dropped.
    pub(super) lack: Option<NoMemory>,
}

/// What can be wrong with the value of a pair.
pub(super) enum Fault {
    /// It is not a string but this.
    Type(&'static str),
    /// It is a path that is not allowed, with the reason.
    Path(Box<str>, &'static str),
}

impl<'a> Pairs<'a> {
    pub(super) fn new(text: &'a str) -> Self {
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
    pub(super) fn can_be_bare(&self) -> bool {
        match &self.fault {
            None => !self.entries.is_empty(),
            Some((_, Fault::Type(_))) => false,
            Some((_, Fault::Path(value, _))) => value.ends_with(shard_path::EXTENSION),
        }
    }

    /// Adds a pair, unless an allocation has failed before.
    pub(super) fn push(&mut self, name: Result<Cow<'a, str>, NoMemory>, value: Value<'a>) {
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
    pub(super) fn add_entry(&mut self, name: Range<usize>, shard: u32) -> Result<(), NoMemory> {
        let (name_start, name_end) = (saturated(name.start), saturated(name.end));
        reserve::push(&mut self.entries, Entry { name_start, name_end, shard })
    }

    /// The position of a shard, or what is wrong with its path. A new path gets a new position.
    pub(super) fn position(&mut self, shard: Cow<'a, str>) -> Result<Result<u32, Fault>, NoMemory> {
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

/// A position in a text of at most [`MAX_BYTE_LEN`](super::MAX_BYTE_LEN) bytes, or a number of items in it.
#[inline]
fn saturated(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
