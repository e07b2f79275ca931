//! The index: whatever its text, no path in it leads out of the directory.
//!
//! The parser of the index is no part of the public API, so this opens a directory that holds the
//! index and nothing else: every shard that the parser lets through is then listed as missing.

use std::cell::RefCell;
use std::path::{Component, Path};

use modeldir::error::Fault;
use modeldir::{ErrorKind, ModelDir};
use serde_json::Value;
use tempfile::TempDir;

use crate::scratch;

thread_local! {
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// Checks what a directory with this index is.
///
/// # Errors
///
/// Says what does not hold.
pub fn weight_map(text: &[u8]) -> Result<(), String> {
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(scratch::folder).path();
        scratch::write(&folder.join("model.safetensors.index.json"), text);
        check(folder, text)
    })
}

fn check(folder: &Path, text: &[u8]) -> Result<(), String> {
    let error = match ModelDir::open(folder) {
        Ok(model) => return Err(format!("opened without a shard: {model:?}")),
        Err(error) => error,
    };
    let shown = error.to_string();
    if !shown.contains("index.json") && !shown.contains(&*folder.to_string_lossy()) {
        return Err(format!("names no file: {shown}"));
    }
    if shown.chars().any(|c| c.is_control() && c != '\n') {
        return Err(format!("shown as {shown:?}"));
    }
    let ErrorKind::Incomplete { faults, .. } = error.kind() else { return Ok(()) };
    for fault in faults {
        let Fault::MissingShard { shard, .. } = fault else {
            return Err(format!("there are no shards: {fault:?}"));
        };
        stays_below(shard.strip_prefix(folder).unwrap_or(shard))?;
    }
    // A plain reader of the same text: nothing that it would join is lost or let through.
    let Ok(Value::Object(index)) = serde_json::from_slice(text) else { return Ok(()) };
    let Some(Value::Object(map)) = index.get("weight_map") else { return Ok(()) };
    for value in map.values() {
        let path = value.as_str().ok_or_else(|| format!("{value} was taken for a path"))?;
        stays_below(Path::new(path))?;
    }
    Ok(())
}

/// Fails unless a path is relative, leads down only, and ends as weight files do.
fn stays_below(path: &Path) -> Result<(), String> {
    let leads_down =
        path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let text = path.to_string_lossy();
    let is_plain = !text.contains(['\\', ':']) && !text.chars().any(char::is_control);
    match leads_down && is_plain && text.ends_with(".safetensors") {
        true => Ok(()),
        false => Err(format!("{path:?} was let through")),
    }
}
