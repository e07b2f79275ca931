//! Finds the weight files of a path. Reads folders and indexes, opens no shard.

// Applies to the modules below too.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod choice;
mod family;
mod given;
mod ignored;
mod index_file;
mod input;
mod inside;
mod listing;
mod missing;
mod names;
mod numbered;
mod present;
mod rank_files;

use std::path::Path;

use tensorfile::PathText;

use crate::open_options::Weights;
use crate::weights::shard_path;
use crate::{ErrorKind, ModelConfig, OpenOptions, Result};
use choice::Choice;
use family::Folder;
use index_file::check_shards;
use listing::Listing;

pub(crate) use choice::Resolved;
pub use ignored::{IgnoreReason, IgnoredFile};
pub(crate) use input::{Input, classify};
pub(crate) use missing::Causes;
pub(crate) use present::{Present, present};

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

/// The names of all files of a folder that are text.
pub(crate) fn file_names(folder: &Path) -> Result<Vec<String>> {
    Ok(Listing::read(folder)?.file_names())
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
    if let Weights::OfRank(rank) = options.weights {
        let files = rank_files::of_rank(listing, rank).map_err(|kind| kind.at(root))?;
        return Ok(Choice::of_files(files));
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
    if path.ends_with(names::INDEX_ENDING) {
        return Ok(folder.named_index(&path)?.remarking(remark));
    }
    let file = shard_path::normalise(value).map_err(refuse)?;
    Ok(Choice::of_files([file.as_ref().into()]).remarking(remark))
}

#[cfg(test)]
mod tests;
