//! Moves finished files into the directory in an order that a crash cannot turn into a mixed model.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::io_error::io_error;
use crate::resolve::Present;

/// One change of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Takes a file away.
    Remove(PathBuf),
    /// Makes a folder, if it is not there.
    Folder(PathBuf),
    /// Gives a finished file its name, in place of one that has it.
    Place(PathBuf),
    /// Waits until what was done in a folder of the directory, or in itself, is on the disk.
    Sync(Option<PathBuf>),
}

/// What changes beside the weights.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Files to be removed.
    pub(super) stale: Vec<PathBuf>,
    /// Finished files that get their names.
    pub(super) placed: Vec<PathBuf>,
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.stale.is_empty() && self.placed.is_empty()
    }

    fn steps(&self) -> Vec<Step> {
        let Self { stale, placed } = self;
        let mut folders: Vec<_> = placed.iter().filter_map(|name| folder_of(name)).collect();
        folders.sort_unstable();
        folders.dedup();
        let removed = stale.iter().cloned().map(Step::Remove);
        let made = folders.iter().map(|folder| Step::Folder((*folder).to_owned()));
        let placed = placed.iter().cloned().map(Step::Place);
        let synced = folders.iter().map(|folder| Step::Sync(Some((*folder).to_owned())));
        removed.chain(made).chain(placed).chain(synced).chain([Step::Sync(None)]).collect()
    }
}

/// The steps from the files that are there to those that are finished.
///
/// After any of them the directory opens as the old model, as the new one, or not at all. A
/// single new file takes its place before old ones go, so that it may replace one at once. Of
/// several, none does while an old one or its index is there: both may have the same name. What
/// lies beside the weights changes while there are none.
pub(super) fn steps(
    old: Present,
    beside: &Changes,
    shards: &[PathBuf],
    index: Option<&Path>,
) -> Vec<Step> {
    let Present { indexes, shards: mut stale, .. } = old;
    // A single file first: left over beside a numbered set it would open once the set is gone. Then
    // the first file of each numbered set, so that none is whole when only one is left.
    stale.sort_by_key(|name| (name.as_os_str() != "model.safetensors", name.clone()));
    let is_at_once = index.is_none() && beside.is_empty();
    let is_replaced = |name: &PathBuf| is_at_once && shards.contains(name);
    let stale = indexes.into_iter().chain(stale).filter(|name| !is_replaced(name));
    let removed = stale.map(Step::Remove).collect::<Vec<_>>();
    let index = index.map(|index| Step::Place(index.into()));
    let placed = shards.iter().cloned().map(Step::Place).chain(index).collect::<Vec<_>>();
    let sync = vec![Step::Sync(None)];
    if is_at_once {
        return [placed, sync.clone(), removed, sync].concat();
    }
    let beside = if beside.is_empty() { Vec::new() } else { beside.steps() };
    [removed, sync.clone(), beside, placed, sync].concat()
}

/// Takes one step; the errors name the file in `dir`.
pub(super) fn take(step: &Step, dir: &Path, finished: &Path) -> Result<()> {
    let failed = |name: &Path, action, error| Err(io_error(&dir.join(name), action, error));
    let done = match step {
        Step::Remove(name) => (fs::remove_file(dir.join(name)), name, "remove"),
        Step::Folder(name) => (fs::create_dir_all(dir.join(name)), name, "create"),
        Step::Place(name) => (fs::rename(finished.join(name), dir.join(name)), name, "replace"),
        Step::Sync(Some(name)) => (sync(&dir.join(name)), name, "sync"),
        Step::Sync(None) => {
            return sync(dir).map_err(|error| io_error(dir, "sync", error));
        }
    };
    match done {
        (Err(error), name, action) => failed(name, action, error),
        (Ok(()), ..) => Ok(()),
    }
}

/// The folder in the directory that a file lies in, if it is not in the directory itself.
pub(super) fn folder_of(name: &Path) -> Option<&Path> {
    name.parent().filter(|folder| !folder.as_os_str().is_empty())
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
