//! One pass over the JSON of an index: its entries in file order, and the useful part of
//! `metadata`.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod document;
mod metadata;
mod pairs;
mod plain;
mod value;

use tensorfile::reserve::{self, NoMemory};

use crate::json::{self, JsonError};
use crate::{ErrorKind, Result};

use document::{read_any, read_bare};
use metadata::Metadata;
use pairs::{Fault, Pairs};

pub(crate) use pairs::Entry;

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
    let json = json::without_mark(text);
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
    let pairs = read_bare(text, json).map_err(|_| ErrorKind::NoWeightMap)?;
    let pairs = complete(pairs.lack, pairs)?;
    if pairs.can_be_bare() { Ok(pairs) } else { Err(ErrorKind::NoWeightMap.into()) }
}

/// The value read, or an error if an allocation failed meanwhile.
fn complete<T>(lack: Option<NoMemory>, read: T) -> Result<T> {
    lack.map_or(Ok(read), |none| Err(none.into()))
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

#[cfg(test)]
mod tests;
