//! `JsonFile`: what a JSON file beside the weights says, as a type.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::path::Path;

use serde_json::{Map, Value};

use crate::Result;
use crate::json::{self, MaxBytes};

/// What a JSON file says. Errors name its path.
pub(crate) trait JsonFile: Sized {
    /// Reads the fields of the file's object. `notes` has one for each duplicate key.
    fn from_object(path: &Path, object: Map<String, Value>, notes: Vec<String>) -> Self;

    /// Parses the bytes of a file.
    fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self> {
        json::text(bytes).map_err(|error| error.at(path)).and_then(|text| from_text(path, text))
    }

    /// Reads and parses a file of at most 64 MiB.
    fn read(path: &Path) -> Result<Self> {
        from_text(path, &json::read(path, MaxBytes::FIXED)?)
    }

    /// Reads and parses a file of a directory, if it exists.
    fn read_if_there(path: &Path, max_bytes: u64) -> Result<Option<Self>> {
        let text = json::read_if_there(path, MaxBytes::of_json(max_bytes))?;
        text.map(|text| from_text(path, &text)).transpose()
    }
}

/// Parses the text of a file.
fn from_text<T: JsonFile>(path: &Path, text: &str) -> Result<T> {
    let (object, notes) = json::parse_object(text).map_err(|error| error.at(path))?;
    Ok(T::from_object(path, object, notes))
}
