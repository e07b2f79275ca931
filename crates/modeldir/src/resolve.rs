//! Finds the weight files of a path. Reads folders and indexes, opens no shard.

mod family;
mod input;
mod inside;
mod listing;
mod missing;
mod numbered;
mod present;

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tensorfile::{Limit, LimitOn, PathText};

use crate::as_text;
use crate::io_error::io_error;
use crate::json::MaxBytes;
use crate::weight_map::WeightMap;
use crate::{
    ErrorKind, Family, ModelConfig, OpenOptions, Result, Weights, json, natural, shard_path,
};
use family::Folder;
use listing::{Entry, Listing, Role};

pub(crate) use input::{Input, classify};
pub(crate) use missing::Causes;
pub(crate) use present::{Present, present};

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

/// A parsed index.
#[derive(Debug)]
pub(crate) struct IndexFile {
    /// The path as opened.
    pub(crate) path: PathBuf,
    pub(crate) map: WeightMap,
}

/// A file or folder of a model directory that is not one of its weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IgnoredFile {
    /// The path, relative to the directory.
    #[serde(serialize_with = "as_text::path")]
    pub path: PathBuf,
    /// Why it is not read.
    pub reason: IgnoreReason,
}

impl fmt::Display for IgnoredFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", PathText(&self.path), self.reason)
    }
}

/// Why a file or folder is not one of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IgnoreReason {
    /// Its name starts with a dot.
    Hidden,
    /// It is part of a download, running or interrupted, or its lock.
    Partial,
    /// It holds the state of a training run.
    Training,
    /// It holds weights in an unsupported format.
    OtherFormat,
    /// The index does not name it.
    NotInIndex,
    /// It belongs to another set of weights or to another variant.
    OtherSet,
    /// It is an index of another set or variant, or one that the options ignore.
    UnusedIndex,
    /// It is a folder without indexed shards.
    Folder,
}

impl fmt::Display for IgnoreReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hidden => "hidden",
            Self::Partial => "part or lock of a download",
            Self::Training => "state of a training run",
            Self::OtherFormat => "weights of a format that is not read",
            Self::NotInIndex => "not named by the index",
            Self::OtherSet => "of another set of weights",
            Self::UnusedIndex => "index that is not used",
            Self::Folder => "folder that is not named by the index",
        })
    }
}

/// Finds the weight files of the model at `path`, which was classified as `input`.
///
/// A path to a file opens that file, whatever its name; one that ends in `.json` is opened as an
/// index of files in its folder. `transformers_weights` of the folder's configuration is used
/// unless the options choose weights.
///
/// Lists one folder and reads at most one index and one `model_index.json`. It looks up shards only
/// if the choice depends on their presence. Only on an error does it list folders below: those of
/// snapshots, and, where there are no weights, the first entries of some folders.
///
/// # Errors
///
/// [`ErrorKind::UnusableOption`] if an option contradicts the path. For weights
/// that are ambiguous or not found, see [`ErrorKind`]. Missing shards are no error here.
pub(crate) fn resolve(
    path: &Path,
    input: Input,
    options: &OpenOptions,
    config: Option<&ModelConfig>,
) -> Result<Resolved> {
    input::refuse_options(path, input, options)?;
    if input == Input::Folder {
        let listing = Listing::read(path)?;
        let choice = choose(path, &listing, options, config)?;
        check_shards(path, choice.shards.len(), options)?;
        return Ok(choice.resolved(path, &listing));
    }
    let name = path.file_name().unwrap_or_default();
    let root = input.folder(path);
    if input == Input::Index {
        let listing = Listing::read(root)?;
        let choice = Folder::new(root, &listing, options).indexed(path.to_owned(), None)?;
        return Ok(choice.resolved(root, &listing));
    }
    let resolved = Choice::of_files([name.into()]).resolved(root, &Listing::none());
    let file_names = Listing::read(root).map(|listing| listing.file_names()).unwrap_or_default();
    Ok(Resolved { file_names, ..resolved })
}

/// Chooses the weights of a folder.
fn choose(
    root: &Path,
    listing: &Listing,
    options: &OpenOptions,
    config: Option<&ModelConfig>,
) -> Result<Choice> {
    if let Weights::Files(files) = &options.weights {
        return Ok(Choice::of_files(files.iter().cloned()));
    }
    input::refuse_containers(root, listing, options)?;
    let folder = Folder::new(root, listing, options);
    let weights = &options.weights;
    let is_open = weights.asked_variant().is_none() && weights.asked_family().is_none();
    let config = config.filter(|_| is_open);
    match config.and_then(|config| Some((config.path(), config.transformers_weights()?))) {
        Some((path, value)) => configured(&folder, path, value),
        None => folder.choose(),
    }
}

/// The weights named by `transformers_weights` of the configuration at `config`.
fn configured(folder: &Folder<'_>, config: &Path, value: &str) -> Result<Choice> {
    let refuse = |reason| ErrorKind::WeightsPath { value: value.into(), reason }.at(config);
    let path = shard_path::relative(value).map_err(refuse)?;
    let name = Path::new(config.file_name().unwrap_or_default());
    let remark = format!(
        "{}: transformers_weights names {}",
        PathText(name),
        PathText(path.as_ref().as_ref())
    );
    if path.ends_with(family::INDEX_ENDING) {
        return Ok(folder.named_index(&path)?.remarking(remark));
    }
    let file = shard_path::normalise(value).map_err(refuse)?;
    Ok(Choice::of_files([file.as_ref().into()]).remarking(remark))
}

/// Reads and parses an index.
fn read_index(path: &Path, options: &OpenOptions) -> Result<WeightMap> {
    let text = json::read(path, MaxBytes::of_index(options.max_index_bytes))?;
    let map = WeightMap::parse(text).map_err(|error| error.at(path))?;
    check_shards(path, map.shards().len(), options)?;
    Ok(map)
}

/// Refuses too many shards before any of them is looked up.
fn check_shards(path: &Path, found: usize, options: &OpenOptions) -> Result<()> {
    if found <= options.max_shards {
        return Ok(());
    }
    let limit = Limit {
        what: LimitOn::Shards,
        limit: options.max_shards as u64,
        found: found as u64,
        option: Some("OpenOptions::max_shards"),
    };
    Err(ErrorKind::Limit(limit).at(path))
}

/// The choice made in a folder.
#[derive(Debug, Default)]
struct Choice {
    family: Option<Family>,
    index: Option<IndexFile>,
    shards: Vec<PathBuf>,
    notes: Vec<String>,
    remarks: Vec<String>,
}

impl Choice {
    /// Files without an index, in natural order and each once.
    fn of_files(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut shards: Vec<PathBuf> = files.into_iter().collect();
        shards.sort_by(|a, b| natural_os(a.as_os_str(), b.as_os_str()));
        shards.dedup();
        Self { shards, ..Self::default() }
    }

    fn remarking(mut self, remark: String) -> Self {
        self.remarks.push(remark);
        self
    }

    /// Adds the other contents of the folder to the choice.
    fn resolved(self, root: &Path, listing: &Listing) -> Resolved {
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

/// The names of all files of a folder that are text.
pub(crate) fn file_names(folder: &Path) -> Result<Vec<String>> {
    Ok(Listing::read(folder)?.file_names())
}

/// Compares names in natural order; they need not be UTF-8.
fn natural_os(a: &OsStr, b: &OsStr) -> Ordering {
    natural::compare(&a.to_string_lossy(), &b.to_string_lossy()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests;
