//! `config.json`: the shape of a model, as a loader or a server needs it.

// Applies to the modules below too.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod dtype;
mod names;
mod read;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::beside::accessors::accessors;
use crate::beside::json_file::JsonFile;
use crate::beside::versions::newest_first;
use crate::json;
use crate::{ErrorKind, Result};

pub(crate) use dtype::with_dtype;

/// The fields of `config.json`, with the raw JSON.
///
/// Every field is optional. Model families name the same field differently; each of these names is
/// looked up at the top level first, then in the configuration of the language model
/// (`text_config`, `language_config`, `llm_config`, `thinker_config.text_config`). `null` means
/// absent. A field of the wrong type is absent too, with an entry in [`notes`](Self::notes).
/// `params.json`, the form of Mistral's own releases, is read in the same way.
///
/// The configuration is a hint; the weight files decide dtypes and shapes of tensors.
///
/// ```
/// use modeldir::ModelConfig;
///
/// let json = br#"{"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "limit": Infinity}"#;
/// let config = ModelConfig::from_json("config.json", json)?;
/// assert_eq!(config.model_type(), Some("llama"));
/// assert_eq!(config.head_dim(), Some(16));
/// assert_eq!(config.num_key_value_heads(), Some(4));
/// assert_eq!(config.number("/limit"), Some(f64::INFINITY));
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    path: PathBuf,
    model_type: Option<String>,
    class_name: Option<String>,
    architectures: Vec<String>,
    dtype: Option<String>,
    hidden_size: Option<usize>,
    num_hidden_layers: Option<usize>,
    num_attention_heads: Option<usize>,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    intermediate_size: Option<usize>,
    vocab_size: Option<usize>,
    max_position_embeddings: Option<usize>,
    sliding_window: Option<usize>,
    rope_theta: Option<f64>,
    num_experts: Option<usize>,
    num_experts_per_tok: Option<usize>,
    n_shared_experts: Option<usize>,
    moe_intermediate_size: Option<usize>,
    first_k_dense_replace: Option<usize>,
    num_nextn_predict_layers: Option<usize>,
    tie_word_embeddings: Option<bool>,
    bos_token_ids: Vec<u32>,
    eos_token_ids: Vec<u32>,
    pad_token_ids: Vec<u32>,
    transformers_weights: Option<String>,
    has_auto_map: bool,
    raw: Value,
    notes: Vec<String>,
}

impl ModelConfig {
    /// Parses the bytes of a `config.json` or `params.json`. Errors and notes name `path`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Json`] if the bytes are not a JSON object; [`ErrorKind::File`] for an empty
    /// file or a Git LFS pointer.
    pub fn from_json(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Self> {
        Self::from_bytes(path.as_ref(), bytes)
    }

    /// Reads and parses a file of at most 64 MiB.
    ///
    /// # Errors
    ///
    /// The errors of [`from_json`](Self::from_json), [`ErrorKind::File`] if the file cannot be
    /// read, and [`ErrorKind::Limit`] if it is longer.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        Self::read(path.as_ref())
    }

    /// Reads the configuration of a directory: the newest existing version listed in
    /// `configuration_files` of `config.json`, else `config.json` itself; without a `config.json`,
    /// `params.json`.
    pub(crate) fn in_directory(directory: &Path, max_bytes: u64) -> Result<Self> {
        let read = |name: &str| Self::read_if_there(&directory.join(name), max_bytes);
        if let Some(config) = read("config.json")? {
            for name in newest_first(config.raw.get("configuration_files"), "config") {
                if let Some(version) = read(name)? {
                    return Ok(version);
                }
            }
            return Ok(config);
        }
        let no_file = || ErrorKind::NoFile { what: "config.json" }.at(directory);
        read("params.json")?.ok_or_else(no_file)
    }

    /// The path of the file that was read, as opened: `config.json`, a version of it, or
    /// `params.json`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The family of the whole model, such as `llama`; never that of a part of it.
    #[must_use]
    pub fn model_type(&self) -> Option<&str> {
        self.model_type.as_deref()
    }

    /// The class of a diffusers component (`_class_name`), such as `FluxTransformer2DModel`.
    #[must_use]
    pub fn class_name(&self) -> Option<&str> {
        self.class_name.as_deref()
    }

    /// The classes of transformers that the model was saved from.
    #[must_use]
    pub fn architectures(&self) -> &[String] {
        &self.architectures
    }

    /// The dtype in which the model is meant to run, such as `bfloat16`; the weights may have
    /// others.
    ///
    /// Read from `dtype` or `torch_dtype`; `None` for `auto`.
    #[must_use]
    pub fn dtype(&self) -> Option<&str> {
        self.dtype.as_deref()
    }

    /// The ids that begin a text, usually one.
    #[must_use]
    pub fn bos_token_ids(&self) -> &[u32] {
        &self.bos_token_ids
    }

    /// The ids that end a text. Those of `generation_config.json` take precedence.
    #[must_use]
    pub fn eos_token_ids(&self) -> &[u32] {
        &self.eos_token_ids
    }

    /// The ids that pad a batch, usually one.
    #[must_use]
    pub fn pad_token_ids(&self) -> &[u32] {
        &self.pad_token_ids
    }

    /// The weight file or index named by the configuration in place of the usual ones.
    ///
    /// The text is as in the file: it has not been checked and may lead out of the directory.
    #[must_use]
    pub fn transformers_weights(&self) -> Option<&str> {
        self.transformers_weights.as_deref()
    }

    /// The number at a JSON pointer such as `/rope_scaling/factor`, infinities and NaN included.
    #[must_use]
    pub fn number(&self, pointer: &str) -> Option<f64> {
        json::float(self.raw.pointer(pointer)?)
    }

    /// The whole file as JSON.
    ///
    /// `NaN`, `Infinity` and `-Infinity`, which JSON lacks, are objects such as
    /// `{"__float__": "NaN"}`, as transformers writes them; [`number`](Self::number) reads them.
    #[must_use]
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    /// Fields of the wrong type and duplicate keys. Each note names the file.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

accessors! { ModelConfig {
    /// The width of the residual stream: `hidden_size`, `n_embd`, `d_model`, `dim`.
    hidden_size: Option<usize>,
    /// The number of layers, without those of [`num_nextn_predict_layers`](Self::num_nextn_predict_layers).
    num_hidden_layers: Option<usize>,
    /// The number of query heads.
    num_attention_heads: Option<usize>,
    /// The number of key and value heads.
    ///
    /// Without a field for it: 1 if `multi_query` is true, else the number of query heads. `None`
    /// if it differs between layers (`block_configs`).
    num_key_value_heads: Option<usize>,
    /// The width of a head.
    ///
    /// Without a field for it: the width divided by the number of query heads, if that is whole.
    /// `None` for multi-head latent attention (`kv_lora_rank`), whose heads have several widths.
    head_dim: Option<usize>,
    /// The inner width of the dense feed-forward layers.
    intermediate_size: Option<usize>,
    /// The number of tokens; includes the padding of the embedding if the file gives only that.
    vocab_size: Option<usize>,
    /// The longest context in tokens.
    max_position_embeddings: Option<usize>,
    /// How many tokens back attention reaches; `None` if `use_sliding_window` is false.
    sliding_window: Option<usize>,
    /// The base of the rotary embedding; that of full attention if kinds of attention differ.
    rope_theta: Option<f64>,
    /// The number of routed experts of a layer: `num_local_experts`, `num_experts`, `n_routed_experts`.
    num_experts: Option<usize>,
    /// How many of the experts a token is sent to.
    num_experts_per_tok: Option<usize>,
    /// The number of experts that every token is sent to.
    n_shared_experts: Option<usize>,
    /// The inner width of an expert, if it differs from
    /// [`intermediate_size`](Self::intermediate_size).
    moe_intermediate_size: Option<usize>,
    /// How many of the first layers have no experts.
    first_k_dense_replace: Option<usize>,
    /// The number of extra layers that predict several tokens ahead.
    num_nextn_predict_layers: Option<usize>,
    /// Whether the output head is the input embedding; what absence means differs between families.
    tie_word_embeddings: Option<bool>,
    /// Whether the configuration names code of its own (`auto_map`). This library never runs it.
    has_auto_map: bool,
} }

#[cfg(test)]
mod tests;
