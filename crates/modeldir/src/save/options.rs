//! The options of a save, and its result.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::as_text;

/// How to save a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveOptions {
    /// Bytes of tensors in one file; 5,000,000,000 by default. A tensor that is larger has a file
    /// of its own. If one file is enough there is no index.
    pub max_shard_bytes: u64,
    /// What becomes of weights that are in the directory.
    pub existing: Existing,
    /// What becomes of configuration, tokenizer and the other files beside the weights.
    pub beside: Beside,
    /// Entries for the metadata of the single file, or of the index if there are shards. `format`
    /// goes into every file, and is `pt` unless it is given here.
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

/// What becomes of weights that are in the directory where a store is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// Nothing is saved where there is any safetensors file or index; with [`Beside::Copy`], nor
    /// where there is any file beside the weights that it is about.
    #[default]
    Refuse,
    /// `model.safetensors`, `model-….safetensors` of any number and their index are replaced.
    /// Weights of other names and of variants stay. For other files see [`Beside::Copy`].
    Replace,
}

/// What becomes of the files beside the weights, such as configuration and tokenizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Beside {
    /// Only weights are written.
    #[default]
    Leave,
    /// The files of [`TensorStore::root`](crate::TensorStore::root) are copied, as they are when the store is saved.
    ///
    /// Copied are `config.json` with its versions (`config.4.9.json`), `params.json`,
    /// `generation_config.json`, `adapter_config.json`, the files that describe a quantization, all
    /// names of a [`FileRole`](crate::beside::FileRole), and `additional_chat_templates/*.jinja`;
    /// never weights, an index or a file of another name. Links are followed, and become files.
    ///
    /// After a [cast](crate::LoadPlan::cast) the `dtype` or `torch_dtype` in `config.json` names the
    /// float type that most elements have. No other character of the file changes.
    ///
    /// Where the directory has any such file, [`Existing::Refuse`] is an error, and
    /// [`Existing::Replace`] removes those that have no copy to replace them.
    Copy,
}

/// What a save wrote.
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
