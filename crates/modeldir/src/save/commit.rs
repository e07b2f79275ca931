//! Moves finished files into the directory in an order that a crash cannot turn into a mixed model.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::resolve::Present;
use crate::{Error, Result};

/// One change of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Takes a file away.
    Remove(PathBuf),
    /// Gives a finished file its name, in place of one that has it.
    Place(PathBuf),
    /// Waits until what was done is on the disk.
    Sync,
}

/// The steps from the weights that are there to those that are finished.
///
/// After any of them the directory opens as the old model, as the new one, or not at all. A
/// single new file takes its place before old ones go, so that it may replace one at once. Of
/// several, none does while an old one or its index is there: both may have the same name.
pub(super) fn steps(old: Present, shards: &[PathBuf], index: Option<&Path>) -> Vec<Step> {
    let Present { indexes, shards: mut stale, .. } = old;
    // A single file first: left over beside a numbered set it would open once the set is gone. Then
    // the first file of each numbered set, so that none is whole when only one is left.
    stale.sort_by_key(|name| (name.as_os_str() != "model.safetensors", name.clone()));
    let is_replaced = |name: &PathBuf| index.is_none() && shards.contains(name);
    let stale = indexes.into_iter().chain(stale).filter(|name| !is_replaced(name));
    let removed = stale.map(Step::Remove).collect::<Vec<_>>();
    let placed = shards.iter().cloned().map(Step::Place).collect::<Vec<_>>();
    let sync = vec![Step::Sync];
    match index {
        None => [placed, sync.clone(), removed, sync].concat(),
        Some(index) => {
            [removed, sync.clone(), placed, vec![Step::Place(index.into())], sync].concat()
        }
    }
}

/// Takes one step; the errors name the file in `dir`.
pub(super) fn take(step: &Step, dir: &Path, finished: &Path) -> Result<()> {
    let failed = |path: PathBuf, action, source| -> Error {
        tensorfile::ErrorKind::io(action, source).at(path).into()
    };
    match step {
        Step::Remove(name) => {
            let path = dir.join(name);
            fs::remove_file(&path).map_err(|source| failed(path, "remove", source))
        }
        Step::Place(name) => {
            let path = dir.join(name);
            fs::rename(finished.join(name), &path).map_err(|source| failed(path, "replace", source))
        }
        Step::Sync => sync(dir).map_err(|source| failed(dir.to_owned(), "sync", source)),
    }
}

/// Makes names outlive a loss of power, where the system can.
#[cfg(unix)]
fn sync(dir: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    match fs::File::open(dir).and_then(|dir| dir.sync_all()) {
        // Folders that may be written to but not read, and file systems that cannot sync one.
        Err(error) if matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}

#[cfg(not(unix))]
fn sync(_dir: &Path) -> io::Result<()> {
    Ok(())
}
