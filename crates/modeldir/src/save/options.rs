//! The options of a save, and its result.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::as_text;

/// Options of a save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveOptions {
    /// The most bytes of tensors in one file; 5,000,000,000 by default. A larger tensor gets a file
    /// of its own. If one file is enough, no index is written.
    pub max_shard_bytes: u64,
    /// What to do with weights that the directory already has.
    pub existing: Existing,
    /// What to do with configuration, tokenizer and the other files beside the weights.
    pub beside: Beside,
    /// Metadata entries for the single file, or for the index if there are several files. The entry
    /// `format` goes into every weight file instead, and is `pt` by default.
    pub metadata: BTreeMap<String, String>,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self {
            max_shard_bytes: 5_000_000_000,
            existing: Existing::default(),
            beside: Beside::default(),
            metadata: BTreeMap::new(),
        }
    }
}

/// What to do with files that the directory already has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// The save fails if the directory has a safetensors file or an index; with [`Beside::Copy`],
    /// also if it has a file of the kinds that are copied.
    #[default]
    Refuse,
    /// `model.safetensors`, all `model-….safetensors` and their index are replaced. Weights with
    /// other names and those of variants stay. [`Beside::Copy`] describes the other files.
    Replace,
}

/// What to do with the files beside the weights, such as configuration and tokenizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Beside {
    /// Only weights are written.
    #[default]
    Leave,
    /// The files are copied from [`TensorStore::root`](crate::TensorStore::root), with their
    /// contents at the time of the save.
    ///
    /// These are copied: `config.json` with its versions (`config.4.9.json`), `params.json`,
    /// `generation_config.json`, `adapter_config.json`, files that describe a quantization, files
    /// with a [`FileRole`](crate::beside::FileRole), and `additional_chat_templates/*.jinja`.
    /// Weights, an index and files of other names are not. The copy of a symbolic link is a regular
    /// file.
    ///
    /// After a [cast](crate::LoadPlan::cast), `dtype` or `torch_dtype` in the new `config.json` is
    /// the float type of most elements. The rest of the file stays the same.
    ///
    /// If the destination already has such files, [`Existing::Refuse`] fails, and
    /// [`Existing::Replace`] replaces those that are copied and removes the others.
    Copy,
}

/// The files that a save wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Saved {
    /// The weight files, in order.
    #[serde(serialize_with = "as_text::paths")]
    pub shards: Vec<PathBuf>,
    /// The index, if there is more than one weight file.
    #[serde(serialize_with = "as_text::optional_path")]
    pub index: Option<PathBuf>,
    /// The copies of files beside the weights, in order.
    #[serde(serialize_with = "as_text::paths")]
    pub beside: Vec<PathBuf>,
    /// Bytes of all tensors.
    pub byte_len: u64,
}
