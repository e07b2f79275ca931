//! Probable causes of missing shards.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::listing::{Listing, is_partial};
use crate::error::MissingCause;

/// The maximum number of shards whose cause is looked up. If more are missing, they are likely to
/// share a cause.
const MAX_SHARDS: usize = 100;

/// Finds why shards of one model are missing. Lists each folder once.
#[derive(Debug)]
pub(crate) struct Causes<'a> {
    root: &'a Path,
    /// The folders listed so far, relative to `root`; `None` for unreadable ones.
    listings: HashMap<PathBuf, Option<Listing>>,
    /// The number of shards looked up so far.
    num_shards: usize,
}

impl<'a> Causes<'a> {
    /// Starts without any folder listed.
    pub(crate) fn new(root: &'a Path) -> Self {
        Self { root, listings: HashMap::new(), num_shards: 0 }
    }

    /// The probable cause why `shard`, a path relative to the root, cannot be opened.
    ///
    /// Looks for a dangling link, for partial downloads beside the shard, and for those of the
    /// hub's own tools in `.cache/huggingface/download` and in the blobs of a hub cache. After
    /// [`MAX_SHARDS`] shards it returns [`MissingCause::NotLookedFor`].
    pub(crate) fn cause(&mut self, shard: &Path) -> MissingCause {
        if self.num_shards == MAX_SHARDS {
            return MissingCause::NotLookedFor;
        }
        self.num_shards = self.num_shards.saturating_add(1);
        if let Ok(target) = fs::read_link(self.root.join(shard)) {
            return MissingCause::DanglingLink(target);
        }
        let found = self.beside(shard).or_else(|| self.in_downloads(shard));
        let found = found.or_else(|| self.in_blobs());
        found.map_or(MissingCause::Unknown, MissingCause::Incomplete)
    }

    /// A partial download of a file, in the folder of its path.
    fn beside(&mut self, path: &Path) -> Option<PathBuf> {
        let name = path.file_name()?.to_str()?;
        // `.name.xyz.incomplete` is hidden until the download is complete.
        let rest = |entry: &str| {
            let entry = entry.strip_prefix('.').unwrap_or(entry);
            entry.strip_prefix(name)?.strip_prefix('.').map(str::to_owned)
        };
        let is_trace = |entry: &str| {
            rest(entry).is_some_and(|rest| {
                let extension = rest.rsplit('.').next().unwrap_or_default();
                extension != "lock" && is_partial(extension)
            })
        };
        self.first_in(path.parent()?, is_trace)
    }

    /// A partial download of `hf download --local-dir`, which uses a folder that mirrors the
    /// model's.
    fn in_downloads(&mut self, shard: &Path) -> Option<PathBuf> {
        let mirror = Path::new(".cache/huggingface/download").join(shard);
        if let Some(found) = self.beside(&mirror) {
            return Some(found);
        }
        // Newer versions name the partial file by a hash. The lock still has the shard's name, and
        // the metadata is written when the shard is complete.
        let trace = |ending: &str| {
            let mut name = mirror.clone().into_os_string();
            name.push(ending);
            self.root.join(name).exists()
        };
        if !trace(".lock") || trace(".metadata") {
            return None;
        }
        self.first_in(mirror.parent()?, is_incomplete)
    }

    /// A partial download in the blobs of a hub cache, if the root is a snapshot in one.
    fn in_blobs(&mut self) -> Option<PathBuf> {
        let is_snapshot = self.root.parent()?.file_name()? == "snapshots";
        if !is_snapshot {
            return None;
        }
        self.first_in(Path::new("../../blobs"), is_incomplete)
    }

    /// The first matching entry, by name, of a folder below the root.
    fn first_in(&mut self, folder: &Path, fits: impl Fn(&str) -> bool) -> Option<PathBuf> {
        let read = || Listing::read(&self.root.join(folder)).ok();
        let listing = self.listings.entry(folder.to_owned()).or_insert_with(read).as_ref()?;
        let mut names = listing.entries.iter().filter_map(|entry| entry.name.to_str());
        names.find(|name| fits(name)).map(|name| folder.join(name))
    }
}

fn is_incomplete(name: &str) -> bool {
    name.ends_with(".incomplete")
}

#[cfg(test)]
mod tests {
    use super::{Causes, MAX_SHARDS};
    use crate::error::MissingCause;
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn a_partial_download_is_found_where_tools_leave_it() {
        const DOWNLOADS: &str = ".cache/huggingface/download";
        let cases: &[(&[&str], &str, Option<&str>)] = &[
            (&[], "m.safetensors", None),
            (&["m.safetensors.incomplete"], "m.safetensors", Some("m.safetensors.incomplete")),
            (
                &["m.safetensors.part_ab", "m.safetensors.part_aa"],
                "m.safetensors",
                Some("m.safetensors.part_aa"),
            ),
            (&["s/m.safetensors.x.tmp"], "s/m.safetensors", Some("s/m.safetensors.x.tmp")),
            (
                &[".m.safetensors.Kf3.incomplete"],
                "m.safetensors",
                Some(".m.safetensors.Kf3.incomplete"),
            ),
            (
                &["m.safetensors.lock", "m.safetensors.bak", "mm.safetensors.part"],
                "m.safetensors",
                None,
            ),
            (
                &[&format!("{DOWNLOADS}/s/m.safetensors.12ab.incomplete")],
                "s/m.safetensors",
                Some(".cache/huggingface/download/s/m.safetensors.12ab.incomplete"),
            ),
            (
                &[
                    &format!("{DOWNLOADS}/m.safetensors.lock"),
                    &format!("{DOWNLOADS}/h=.e.incomplete"),
                ],
                "m.safetensors",
                Some(".cache/huggingface/download/h=.e.incomplete"),
            ),
            (&[&format!("{DOWNLOADS}/h=.e.incomplete")], "m.safetensors", None),
            // The shard's own download is complete; the partial file is of another one.
            (
                &[
                    &format!("{DOWNLOADS}/m.safetensors.lock"),
                    &format!("{DOWNLOADS}/m.safetensors.metadata"),
                    &format!("{DOWNLOADS}/h=.e.incomplete"),
                ],
                "m.safetensors",
                None,
            ),
        ];
        for (files, shard, expected) in cases {
            let dir = tempfile::tempdir().unwrap();
            for file in *files {
                let path = dir.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            let expected = expected.map_or(MissingCause::Unknown, |part| {
                MissingCause::Incomplete(PathBuf::from(part))
            });
            assert_eq!(Causes::new(dir.path()).cause(Path::new(shard)), expected, "{files:?}");
        }
    }

    #[test]
    fn a_snapshot_looks_into_the_blobs() {
        let dir = tempfile::tempdir().unwrap();
        let snapshot = dir.path().join("snapshots/1");
        fs::create_dir_all(&snapshot).unwrap();
        fs::create_dir_all(dir.path().join("blobs")).unwrap();
        fs::write(dir.path().join("blobs/ab.incomplete"), "").unwrap();
        assert_eq!(
            Causes::new(&snapshot).cause(Path::new("m.safetensors")),
            MissingCause::Incomplete("../../blobs/ab.incomplete".into())
        );
    }

    #[test]
    fn each_folder_is_listed_once_and_not_for_every_shard() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.safetensors.part"), "").unwrap();
        let mut causes = Causes::new(dir.path());
        let incomplete = MissingCause::Incomplete("a.safetensors.part".into());
        assert_eq!(causes.cause(Path::new("a.safetensors")), incomplete);
        // A later file is not found, as the folder is not listed again.
        fs::write(dir.path().join("b.safetensors.part"), "").unwrap();
        assert_eq!(causes.cause(Path::new("b.safetensors")), MissingCause::Unknown);
        for _ in 2..MAX_SHARDS {
            assert_eq!(causes.cause(Path::new("a.safetensors")), incomplete);
        }
        assert_eq!(causes.cause(Path::new("a.safetensors")), MissingCause::NotLookedFor);
        assert_eq!(causes.listings.len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_dangling_link_gives_its_target() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("../../blobs/ab", dir.path().join("m.safetensors")).unwrap();
        assert_eq!(
            Causes::new(dir.path()).cause(Path::new("m.safetensors")),
            MissingCause::DanglingLink("../../blobs/ab".into())
        );
    }
}
