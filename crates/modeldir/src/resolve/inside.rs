//! Finds subfolders with weights, for the error of a directory without any; bounded in cost.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::listing::{Kind, Role, role};

/// The maximum number of folders searched.
const MAX_FOLDERS: usize = 100;

/// The maximum number of entries read in each.
const MAX_ENTRIES: usize = 1000;

/// How many folders deep the search goes.
const MAX_DEPTH: usize = 3;

/// The folders nearest to `root`, among these of `root` and those below them, whose entries include
/// weights or an index by name. Below a folder with weights nothing is searched.
pub(super) fn with_weights(root: &Path, folders: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut level: Vec<PathBuf> = folders.take(MAX_FOLDERS).collect();
    let (mut found, mut searched) = (Vec::new(), 0_usize);
    for _ in 0..MAX_DEPTH {
        let mut below = Vec::new();
        for folder in level {
            if searched == MAX_FOLDERS {
                return found;
            }
            searched = searched.saturating_add(1);
            let inside = Inside::of(entries(&root.join(&folder)));
            if inside.has_weights {
                found.push(folder);
            } else {
                below.extend(inside.folders.into_iter().map(|name| folder.join(name)));
            }
        }
        level = below;
    }
    found
}

/// The entries of a folder; none of a link, which may lead anywhere, even to a file system that
/// hangs.
fn entries(folder: &Path) -> impl Iterator<Item = (OsString, Kind)> {
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir());
    let entries = is_folder.then(|| fs::read_dir(folder)).into_iter().flatten().flatten();
    entries.flatten().map(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        (entry.file_name(), if is_folder { Kind::Folder } else { Kind::File })
    })
}

/// What the first entries of a folder are by their names.
struct Inside {
    has_weights: bool,
    /// Folders, sorted.
    folders: Vec<OsString>,
}

impl Inside {
    fn of(entries: impl Iterator<Item = (OsString, Kind)>) -> Self {
        let mut inside = Self { has_weights: false, folders: Vec::new() };
        for (name, kind) in entries.take(MAX_ENTRIES) {
            match role(&name, kind) {
                Role::Weights | Role::RankFile | Role::Index => inside.has_weights = true,
                Role::Folder => inside.folders.push(name),
                _ => {}
            }
        }
        inside.folders.sort();
        inside
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{Inside, Kind, MAX_ENTRIES, MAX_FOLDERS, with_weights};

    fn found(root: &Path, folders: &[&str]) -> Vec<PathBuf> {
        with_weights(root, folders.iter().map(PathBuf::from))
    }

    #[test]
    fn weights_and_indexes_count_and_folders_of_such_names_do_not() {
        let root = tempfile::tempdir().unwrap();
        for (path, is_folder) in [
            ("weights/model.safetensors", false),
            ("index/model.safetensors.index.json", false),
            ("deep/below/model.safetensors", false),
            ("deep/.hidden/model.safetensors", false),
            ("weights/below/model.safetensors", false),
            ("too/deep/to/be/model.safetensors", false),
            ("named/model.safetensors", true),
            ("legacy/model.bin", false),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(if is_folder { &path } else { path.parent().unwrap() }).unwrap();
            if !is_folder {
                fs::write(path, "").unwrap();
            }
        }
        let folders = ["weights", "index", "deep", "named", "legacy", "gone", "too"];
        let expected = ["weights", "index", "deep/below"].map(Path::new);
        assert_eq!(found(root.path(), &folders), expected);
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
        assert!(!Inside::of(entries).has_weights);
        assert_eq!(asked, MAX_ENTRIES);

        let mut asked = 0;
        let folders = (0..2 * MAX_FOLDERS).map(|number| {
            asked += 1;
            PathBuf::from(number.to_string())
        });
        assert_eq!(with_weights(Path::new("/nowhere"), folders).len(), 0);
        assert_eq!(asked, MAX_FOLDERS);
    }
}
