//! How the weights are quantized, wherever a directory says so.

mod read;

use std::path::Path;

use serde_json::Value;

use crate::accessors::accessors;
use crate::json;
use crate::{ModelConfig, Result};

/// Files beside `config.json` that describe a quantization, in the order they are tried.
const SIDE_CARS: [&str; 3] = ["quantize_config.json", "quant_config.json", "hf_quant_config.json"];

/// How the weights are quantized, with the raw JSON kept.
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
    /// The quantization that a model's configuration describes, if it does.
    ///
    /// Looked for in `quantization_config` (at the top or in the part for text),
    /// `compression_config` and MLX's `quantization`.
    #[must_use]
    pub fn from_config(config: &ModelConfig) -> Option<Self> {
        let mut found = read::from_config(config.raw().as_object()?)?;
        let notes = found.notes.iter().map(|note| format!("{}.{note}", found.source)).collect();
        found.notes = json::notes_of(config.path(), notes);
        Some(found)
    }

    /// The quantization that a file beside `config.json` describes, if it describes one.
    ///
    /// `path` is used in errors and notes, and its last part tells what wrote the file: `quantize_config.json`
    /// (GPTQ), `quant_config.json` (AWQ) or `hf_quant_config.json` (`ModelOpt`).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Json`](crate::ErrorKind::Json) and its neighbours where the bytes are not a JSON object.
    pub fn from_json(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Option<Self>> {
        let path = path.as_ref();
        json::text(bytes).and_then(|text| Self::parse(path, text)).map_err(|error| error.at(path))
    }

    /// The quantization of a directory: that of its configuration, else that of a file beside it.
    pub(crate) fn in_directory(
        directory: &Path,
        config: Option<&ModelConfig>,
        max_bytes: u64,
    ) -> Result<Option<Self>> {
        if let Some(found) = config.and_then(Self::from_config) {
            return Ok(Some(found));
        }
        for name in SIDE_CARS {
            let path = directory.join(name);
            let Some(text) = json::read_if_there(&path, json::MaxBytes::of_json(max_bytes))? else {
                continue;
            };
            let found = Self::parse(&path, &text).map_err(|error| error.at(&path))?;
            if let Some(found) = found {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Parses a text; notes name `path`, and errors do not.
    fn parse(path: &Path, text: &str) -> Result<Option<Self>> {
        let (object, notes) = json::parse_object(text)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut found = read::from_side_car(&name, &object, notes);
        if let Some(found) = &mut found {
            found.notes = json::notes_of(path, std::mem::take(&mut found.notes));
        }
        Ok(found)
    }

    /// Where it is described: a dotted key of `config.json`, or the name of a file beside it.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The method, such as `gptq`, `awq`, `fp8`, `mxfp4`, `bitsandbytes`, `compressed-tensors`,
    /// `modelopt` or `mlx`; derived from the source where the file does not state it.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// The kind within the method, as the file spells it, such as `NVFP4`, `pack-quantized`, `nf4`.
    #[must_use]
    pub fn algorithm(&self) -> Option<&str> {
        self.algorithm.as_deref()
    }

    /// The rows and columns of a block that has one scale; empty where scales are not by block.
    #[must_use]
    pub fn weight_block_size(&self) -> &[usize] {
        &self.weight_block_size
    }

    /// The modules left as they were, by name or pattern as the file spells them.
    #[must_use]
    pub fn skipped_modules(&self) -> &[String] {
        &self.skipped_modules
    }

    /// How the key and value cache is meant to be quantized, in the method's own form.
    #[must_use]
    pub fn kv_cache(&self) -> Option<&Value> {
        self.kv_cache.as_ref()
    }

    /// The whole description as JSON.
    #[must_use]
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    /// What was odd: fields of the wrong type, keys given twice in a file beside `config.json`. Each
    /// note names the file.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

accessors! { Quantization {
    /// Bits of a weight, as stated or as method and algorithm imply; None where layers differ.
    bits: Option<usize>,
    /// How many weights in a row share a scale; -1 means the whole row.
    group_size: Option<i64>,
    /// GPTQ: whether columns were quantized in the order of their activations (`g_idx` matters).
    desc_act: Option<bool>,
    /// Whether zero is the middle of the range, so that there are no zero points.
    sym: Option<bool>,
} }

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Quantization;
    use crate::ModelConfig;

    #[test]
    fn the_configuration_counts_before_the_files_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name, text| fs::write(dir.path().join(name), text).unwrap();
        let source = |config: Option<&ModelConfig>| {
            let found = Quantization::in_directory(dir.path(), config, 1000).unwrap();
            found.map(|q| q.source().to_owned())
        };
        assert_eq!(source(None), None);
        put("hf_quant_config.json", r#"{"quantization": {"quant_algo": "FP8"}}"#);
        assert_eq!(source(None).as_deref(), Some("hf_quant_config.json"));
        // A file of this name also comes with ONNX exports, and describes something else then.
        put("quantize_config.json", r#"{"per_channel": true}"#);
        assert_eq!(source(None).as_deref(), Some("hf_quant_config.json"));
        put("quantize_config.json", r#"{"bits": 4}"#);
        assert_eq!(source(None).as_deref(), Some("quantize_config.json"));
        let json = br#"{"quantization_config": {"quant_method": "fp8"}}"#;
        let config = ModelConfig::from_json("config.json", json).unwrap();
        assert_eq!(source(Some(&config)).as_deref(), Some("quantization_config"));
    }

    #[test]
    fn notes_name_the_file_and_the_place_in_it() {
        let json = br#"{"quantization_config": {"quant_method": "gptq", "bits": "four"}}"#;
        let config = ModelConfig::from_json("x/config.4.1.json", json).unwrap();
        let found = Quantization::from_config(&config).unwrap();
        let [note] = found.notes() else { panic!("{:?}", found.notes()) };
        assert!(note.starts_with("config.4.1.json: quantization_config.bits: expected"), "{note}");
        let json = br#"{"bits": 4, "group_size": "x"}"#;
        let found = Quantization::from_json("quantize_config.json", json).unwrap().unwrap();
        let [note] = found.notes() else { panic!("{:?}", found.notes()) };
        assert!(note.starts_with("quantize_config.json: group_size: expected"), "{note}");
    }

    #[test]
    fn a_broken_side_car_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("quant_config.json"), "").unwrap();
        let error = Quantization::in_directory(dir.path(), None, 1000).unwrap_err().to_string();
        assert!(error.ends_with("quant_config.json: empty file (0 bytes)"), "{error}");
    }
}
