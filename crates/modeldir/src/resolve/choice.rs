//! The choice of weights in a folder, and what becomes of the folder's other contents.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::ignored::{IgnoreReason, IgnoredFile};
use super::index_file::IndexFile;
use super::listing::{Entry, Listing, Role};
use crate::open_options::Family;
use crate::weights::natural;

/// The weight files of a model, and how they were found.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The folder that shard paths are relative to.
    pub(crate) root: PathBuf,
    /// The family whose names the files have; `None` for other names and for listed files.
    pub(crate) family: Option<Family>,
    /// The index, if one is used.
    pub(crate) index: Option<IndexFile>,
    /// The weight files relative to `root`, in natural order, each once. With an index, these are
    /// [`WeightMap::shards`], present or missing.
    pub(crate) shards: Vec<PathBuf>,
    /// Files and folders that look like weights but are not used, in natural order.
    pub(crate) ignored: Vec<IgnoredFile>,
    /// Oddities found on the way.
    pub(crate) notes: Vec<String>,
    /// How the files were found, if not by the usual names; nothing odd.
    pub(crate) remarks: Vec<String>,
    /// The UTF-8 names of the files in `root`. For a path to one weight file, empty if its folder
    /// cannot be listed.
    pub(crate) file_names: Vec<String>,
}

/// The choice made in a folder.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub(super) family: Option<Family>,
    pub(super) index: Option<IndexFile>,
    pub(super) shards: Vec<PathBuf>,
    pub(super) notes: Vec<String>,
    pub(super) remarks: Vec<String>,
}

impl Choice {
    /// Files without an index, in natural order and each once.
    pub(super) fn of_files(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut shards: Vec<PathBuf> = files.into_iter().collect();
        shards.sort_by(|a, b| natural::compare_os(a.as_os_str(), b.as_os_str()));
        shards.dedup();
        Self { shards, ..Self::default() }
    }

    pub(super) fn remarking(mut self, remark: String) -> Self {
        self.remarks.push(remark);
        self
    }

    /// Adds the other contents of the folder to the choice.
    pub(super) fn resolved(self, root: &Path, listing: &Listing) -> Resolved {
        let index = self.index.as_ref().map(|index| &index.path);
        // A folder with a shard in it is used; the first part of each path names it.
        let used: HashSet<&OsStr> = self
            .shards
            .iter()
            .chain(index)
            .filter_map(|path| path.strip_prefix(root).unwrap_or(path).iter().next())
            .collect();
        let rest = listing.entries.iter().filter(|entry| !used.contains(&*entry.name));
        let ignored = rest.filter_map(|entry| self.ignored(entry)).collect();
        let Self { family, index, shards, notes, remarks } = self;
        let (root, file_names) = (root.to_owned(), listing.file_names());
        Resolved { root, family, index, shards, ignored, notes, remarks, file_names }
    }

    /// Why an entry that looks like weights is not one of them.
    fn ignored(&self, entry: &Entry) -> Option<IgnoredFile> {
        let path = PathBuf::from(&entry.name);
        let reason = match entry.role {
            Role::Weights if self.index.is_some() => IgnoreReason::NotInIndex,
            Role::Weights => IgnoreReason::OtherSet,
            Role::RankFile => IgnoreReason::RankFile,
            Role::Index => IgnoreReason::UnusedIndex,
            Role::Hidden => IgnoreReason::Hidden,
            Role::Partial => IgnoreReason::Partial,
            Role::Training => IgnoreReason::Training,
            Role::Legacy => IgnoreReason::OtherFormat,
            Role::Folder => IgnoreReason::Folder,
            Role::Other => return None,
        };
        Some(IgnoredFile { path, reason })
    }
}
