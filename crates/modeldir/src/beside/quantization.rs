//! The quantization of the weights, as described by a directory.

// Applies to the modules below too.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod places;
mod read;

use serde_json::Value;

use crate::beside::accessors::accessors;

/// The quantization of the weights, with the raw JSON.
///
/// ```
/// use modeldir::{ModelConfig, Quantization};
///
/// let json = br#"{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}"#;
/// let config = ModelConfig::from_json("config.json", json)?;
/// let quantization = Quantization::from_config(&config).expect("there is one");
/// assert_eq!(quantization.method(), Some("gptq"));
/// assert_eq!((quantization.bits(), quantization.group_size()), (Some(4), Some(128)));
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Quantization {
    source: String,
    method: Option<String>,
    algorithm: Option<String>,
    bits: Option<usize>,
    group_size: Option<i64>,
    desc_act: Option<bool>,
    sym: Option<bool>,
    weight_block_size: Vec<usize>,
    skipped_modules: Vec<String>,
    kv_cache: Option<Value>,
    raw: Value,
    notes: Vec<String>,
}

impl Quantization {
    /// The source of the description: a dotted key of `config.json`, or the name of a file beside
    /// it.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The method, such as `gptq`, `awq`, `fp8`, `mxfp4`, `bitsandbytes`, `compressed-tensors`,
    /// `modelopt` or `mlx`; derived from the source if the file does not state it.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// The kind within the method, as the file spells it, such as `NVFP4`, `pack-quantized`, `nf4`.
    #[must_use]
    pub fn algorithm(&self) -> Option<&str> {
        self.algorithm.as_deref()
    }

    /// The rows and columns of a block with one scale; empty if scales are not by block.
    #[must_use]
    pub fn weight_block_size(&self) -> &[usize] {
        &self.weight_block_size
    }

    /// The modules that are not quantized, by name or pattern as spelled in the file.
    #[must_use]
    pub fn skipped_modules(&self) -> &[String] {
        &self.skipped_modules
    }

    /// The quantization intended for the key and value cache, in the method's own form.
    #[must_use]
    pub fn kv_cache(&self) -> Option<&Value> {
        self.kv_cache.as_ref()
    }

    /// The whole description as JSON.
    #[must_use]
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    /// Fields of the wrong type, and duplicate keys in a file beside `config.json`. Each note names
    /// the file.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

accessors! { Quantization {
    /// Bits of a weight, as stated or as implied by method and algorithm; `None` if layers differ.
    bits: Option<usize>,
    /// The number of consecutive weights that share a scale; -1 means the whole row.
    group_size: Option<i64>,
    /// GPTQ: whether columns were quantized in the order of their activations (`g_idx` matters).
    desc_act: Option<bool>,
    /// Whether the range is symmetric around zero, so that there are no zero points.
    sym: Option<bool>,
} }
