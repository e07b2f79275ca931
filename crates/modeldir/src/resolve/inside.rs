//! Finds subfolders with weights, for the error of a directory without any; bounded in cost.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::listing::{Kind, Role, role};

/// The maximum number of folders searched.
const MAX_FOLDERS: usize = 100;

/// The maximum number of entries read in each.
const MAX_ENTRIES: usize = 1000;

/// The listable folders, among these of `root`, whose entries include weights or an index by name.
pub(super) fn with_weights(
    root: &Path,
    folders: impl Iterator<Item = PathBuf>,
) -> impl Iterator<Item = PathBuf> {
    folders.take(MAX_FOLDERS).filter(move |folder| holds_weights(&root.join(folder)))
}

fn holds_weights(folder: &Path) -> bool {
    // A link may lead anywhere, even to a file system that hangs.
    if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
        return false;
    }
    let entries = fs::read_dir(folder).into_iter().flatten();
    name_weights(entries.flatten().map(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        (entry.file_name(), if is_folder { Kind::Folder } else { Kind::File })
    }))
}

/// Whether one of the first entries is named like weights or an index.
fn name_weights(entries: impl Iterator<Item = (OsString, Kind)>) -> bool {
    let is_of_weights =
        |(name, kind): (OsString, Kind)| matches!(role(&name, kind), Role::Weights | Role::Index);
    entries.take(MAX_ENTRIES).any(is_of_weights)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{Kind, MAX_ENTRIES, MAX_FOLDERS, name_weights, with_weights};

    fn found(root: &Path, folders: &[&str]) -> Vec<PathBuf> {
        with_weights(root, folders.iter().map(PathBuf::from)).collect()
    }

    #[test]
    fn weights_and_indexes_count_and_folders_of_such_names_do_not() {
        let root = tempfile::tempdir().unwrap();
        for (path, is_folder) in [
            ("weights/model.safetensors", false),
            ("index/model.safetensors.index.json", false),
            ("deep/below/model.safetensors", false),
            ("named/model.safetensors", true),
            ("legacy/model.bin", false),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(if is_folder { &path } else { path.parent().unwrap() }).unwrap();
            if !is_folder {
                fs::write(path, "").unwrap();
            }
        }
        let folders = ["weights", "index", "deep", "named", "legacy", "gone"];
        assert_eq!(found(root.path(), &folders), [Path::new("weights"), Path::new("index")]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("weights")).unwrap();
        fs::write(root.path().join("weights/model.safetensors"), "").unwrap();
        std::os::unix::fs::symlink("weights", root.path().join("link")).unwrap();
        assert_eq!(found(root.path(), &["link", "weights"]), [Path::new("weights")]);
    }

    #[test]
    fn a_hint_costs_little_however_much_there_is() {
        let mut asked = 0;
        let entries = (0..2 * MAX_ENTRIES).map(|number| {
            asked += 1;
            (format!("{number}.txt").into(), Kind::File)
        });
        assert!(!name_weights(entries));
        assert_eq!(asked, MAX_ENTRIES);

        let mut asked = 0;
        let folders = (0..2 * MAX_FOLDERS).map(|number| {
            asked += 1;
            PathBuf::from(number.to_string())
        });
        assert_eq!(with_weights(Path::new("/nowhere"), folders).count(), 0);
        assert_eq!(asked, MAX_FOLDERS);
    }
}
