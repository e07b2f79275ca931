//! Classifies a path: a weight file, an index, a model's folder, or a folder of several models.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tensorfile::SourceFile;

use super::given::given;
use super::listing::{Kind, Listing, Role};
use crate::beside::file_role::FileRole;
use crate::formats::format_of;
use crate::json::MaxBytes;
use crate::open_options::{IndexPolicy, Weights};
use crate::{Error, ErrorKind, OpenOptions, Result, json};

/// The kind of thing at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A file to read as weights, whatever its name.
    File,
    /// A file to read as an index.
    Index,
    Folder,
}

impl Input {
    /// The folder of a model's JSON files: the path itself, or the parent of the file.
    pub(crate) fn folder(self, path: &Path) -> &Path {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if self == Self::Folder { path } else { parent.unwrap_or(Path::new(".")) }
    }
}

/// Classifies a path without opening it.
pub(crate) fn classify(path: &Path) -> Result<Input> {
    let meta = fs::metadata(path).map_err(|source| unreachable(path, source))?;
    if meta.is_dir() {
        return Ok(Input::Folder);
    }
    if !meta.is_file() {
        SourceFile::open(path)?;
    }
    if path.extension().is_some_and(|extension| extension == "json") {
        if is_beside(path) {
            return Err(ErrorKind::BesideWeights.at(path));
        }
        return Ok(Input::Index);
    }
    if let Some(format) = format_of(path) {
        return Err(ErrorKind::OtherFormat { format }.at(path));
    }
    Ok(Input::File)
}

/// Whether the name of a JSON file is that of a configuration or a tokenizer.
fn is_beside(path: &Path) -> bool {
    const NAMES: [&str; 5] = [
        "config.json",
        "params.json",
        "generation_config.json",
        "adapter_config.json",
        "model_index.json",
    ];
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    NAMES.contains(&name) || FileRole::ALL.iter().any(|role| role.names().contains(&name))
}

/// Refuses options that choose among weights if the path has chosen already, and an empty list of
/// files.
///
/// `IndexPolicy::Ignore` is refused only for the path of an index: for a weight file, no index is
/// read anyway.
pub(super) fn refuse_options(path: &Path, input: Input, options: &OpenOptions) -> Result<()> {
    let refuse = |option, reason| Err(ErrorKind::UnusableOption { option, reason }.at(path));
    let chosen = match input {
        Input::File => Some("the path is that of one weight file"),
        Input::Index => Some("the path is that of an index"),
        Input::Folder => None,
    };
    match (&options.weights, chosen) {
        (Weights::Files(_), Some(reason)) => refuse("Weights::Files", reason),
        (Weights::OfRank(_), Some(reason)) => refuse("Weights::OfRank", reason),
        (Weights::Files(files), None) if files.is_empty() => {
            refuse("Weights::Files", "it lists no file")
        }
        (Weights::Named { index: IndexPolicy::Ignore, .. }, Some(reason))
            if input == Input::Index =>
        {
            refuse("Weights::Named::index", reason)
        }
        (Weights::Named { variant: Some(_), .. }, Some(reason)) => {
            refuse("Weights::Named::variant", reason)
        }
        (Weights::Named { family: Some(_), .. }, Some(reason)) => {
            refuse("Weights::Named::family", reason)
        }
        _ => Ok(()),
    }
}

/// The error for a path that cannot be reached.
fn unreachable(path: &Path, source: io::Error) -> Error {
    if source.kind() != io::ErrorKind::NotFound {
        return Error::from(tensorfile::ErrorKind::io("open", source)).at(path);
    }
    match fs::read_link(path) {
        Ok(target) => tensorfile::ErrorKind::DanglingLink { target }.at(path).into(),
        Err(_) => match given(path) {
            Some(given) => ErrorKind::NotLocal(given).at(path),
            None => tensorfile::ErrorKind::NotFound.at(path).into(),
        },
    }
}

/// Refuses a folder with models in subfolders, and names them.
pub(super) fn refuse_containers(
    root: &Path,
    listing: &Listing,
    options: &OpenOptions,
) -> Result<()> {
    if options.weights.asked_family().is_none() {
        refuse_pipeline(root, listing, options.max_json_bytes)?;
    }
    if listing.of(Role::Weights).chain(listing.of(Role::Index)).next().is_some() {
        return Ok(());
    }
    let is_folder = |name: &str| listing.get(name).is_some_and(|entry| entry.kind == Kind::Folder);
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let is_repository = name.starts_with("models--") || is_folder("refs") || is_folder("blobs");
    if is_folder("snapshots") && is_repository {
        let snapshots = Listing::read(&root.join("snapshots"))?;
        let snapshots = snapshots.of(Role::Folder).map(|e| Path::new("snapshots").join(&e.name));
        return Err(ErrorKind::HubRepository { snapshots: snapshots.collect() }.at(root));
    }
    let is_repository = |path: &PathBuf| path.to_string_lossy().starts_with("models--");
    let folders = listing.of(Role::Folder).map(|entry| PathBuf::from(&entry.name));
    let repositories: Vec<PathBuf> = folders.filter(is_repository).collect();
    if repositories.is_empty() {
        return Ok(());
    }
    Err(ErrorKind::HubCacheRoot { repositories }.at(root))
}

/// Refuses a folder whose `model_index.json` lists models in subfolders.
fn refuse_pipeline(root: &Path, listing: &Listing, max_bytes: u64) -> Result<()> {
    const MANIFEST: &str = "model_index.json";
    if !listing.has(MANIFEST) {
        return Ok(());
    }
    let path = root.join(MANIFEST);
    let manifest =
        json::read(&path, MaxBytes::of_json(max_bytes)).and_then(|text| json::parse_object(&text));
    // With a broken manifest, every folder may be a component.
    let is_component = |name: &str| match &manifest {
        Ok((manifest, _)) => manifest.get(name).is_some_and(names_a_class),
        Err(_) => true,
    };
    let folders = listing.of(Role::Folder).filter_map(|entry| entry.name.to_str());
    let mut components: Vec<&str> = folders.filter(|name| is_component(name)).collect();
    if components.is_empty() {
        return Ok(());
    }
    // Models have a config.json; tokenizers and schedulers have none.
    let is_model = |name: &&str| root.join(name).join("config.json").exists();
    if components.iter().any(is_model) {
        components.retain(is_model);
    }
    let components = components.into_iter().map(PathBuf::from).collect();
    Err(ErrorKind::Pipeline { components }.at(root))
}

/// Whether a value of the manifest is `[library, class]`; `[null, null]` is an absent component.
fn names_a_class(value: &Value) -> bool {
    value.as_array().is_some_and(|pair| pair.len() == 2 && pair.iter().all(Value::is_string))
}
