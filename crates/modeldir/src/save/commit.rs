//! Moves finished files into the directory, in an order in which a crash never mixes two models.

use std::fs;
use std::path::{Path, PathBuf};

use tensorfile::sync_folder;

use crate::Result;
use crate::io_error::io_error;
use crate::resolve::Present;

/// One change of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Removes a file.
    Remove(PathBuf),
    /// Creates a folder, if it does not exist.
    Folder(PathBuf),
    /// Renames a finished file into place, over an old file of the same name.
    Place(PathBuf),
    /// Waits until the changes of this folder, or of the directory itself, are on the disk.
    Sync(Option<PathBuf>),
}

/// The changes beside the weights.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Files to remove.
    pub(super) stale: Vec<PathBuf>,
    /// Finished files to move into place.
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

/// The steps that replace the old files with the finished ones.
///
/// After each step the directory opens as the old model, the new model, or not at all. A single new
/// file is placed before old files are removed, so it can replace one of them in a single step.
/// Several new files are placed only when all old files and their index are gone, because old and
/// new names may be equal. Files beside the weights change while there are no weights.
pub(super) fn steps(
    old: Present,
    beside: &Changes,
    shards: &[PathBuf],
    index: Option<&Path>,
) -> Vec<Step> {
    let Present { indexes, shards: mut stale, .. } = old;
    // The single file goes first: otherwise it would open as the model once the numbered files are
    // gone. Then the first file of each numbered set, so that no set is complete when only one is
    // left.
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

/// Takes one step; errors name the file in `dir`.
pub(super) fn take(step: &Step, dir: &Path, finished: &Path) -> Result<()> {
    let failed = |name: &Path, action, error| Err(io_error(&dir.join(name), action, error));
    let done = match step {
        Step::Remove(name) => (fs::remove_file(dir.join(name)), name, "remove"),
        Step::Folder(name) => (fs::create_dir_all(dir.join(name)), name, "create"),
        Step::Place(name) => (fs::rename(finished.join(name), dir.join(name)), name, "replace"),
        Step::Sync(Some(name)) => (sync_folder(&dir.join(name)), name, "sync"),
        Step::Sync(None) => {
            return sync_folder(dir).map_err(|error| io_error(dir, "sync", error));
        }
    };
    match done {
        (Err(error), name, action) => failed(name, action, error),
        (Ok(()), ..) => Ok(()),
    }
}

/// The subfolder that a file is in, or `None` if it is in the directory itself.
pub(super) fn folder_of(name: &Path) -> Option<&Path> {
    name.parent().filter(|folder| !folder.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{Changes, Step, steps};
    use crate::resolve::Present;

    #[test]
    fn the_index_comes_last_and_every_change_is_synced_before_the_next_kind() {
        let shards = ["a.safetensors", "b.safetensors"].map(PathBuf::from);
        let index = Path::new("index.json");
        let old = || Present {
            indexes: vec!["old.json".into()],
            shards: vec!["old.safetensors".into()],
            ..Present::default()
        };
        let place = |name: &str| Step::Place(name.into());
        let remove = |name: &str| Step::Remove(name.into());
        let sync = || Step::Sync(None);
        let placed = [place("a.safetensors"), place("b.safetensors"), place("index.json"), sync()];
        let removed = [remove("old.json"), remove("old.safetensors"), sync()];
        let found = steps(old(), &Changes::default(), &shards, Some(index));
        assert_eq!(found, [&removed[..], &placed].concat());

        let beside = Changes { stale: vec!["gone".into()], placed: vec!["t/x".into(), "c".into()] };
        let between = [
            remove("gone"),
            Step::Folder("t".into()),
            place("t/x"),
            place("c"),
            Step::Sync(Some("t".into())),
            sync(),
        ];
        let found = steps(old(), &beside, &shards, Some(index));
        assert_eq!(found, [&removed[..], &between, &placed].concat());

        let single = [PathBuf::from("model.safetensors")];
        let found = steps(old(), &Changes::default(), &single, None);
        let at_once = [place("model.safetensors"), sync()];
        assert_eq!(found, [&at_once[..], &removed].concat());
    }
}
