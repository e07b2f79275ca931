//! Where a directory describes the quantization of its weights.

use std::path::Path;

use super::Quantization;
use super::read::{Object, object_at, read};
use crate::beside::json_file::JsonFile;
use crate::json;
use crate::{ModelConfig, Result};

/// Keys of a configuration that describe its quantization, in order of precedence.
const PLACES: [&str; 5] = [
    "quantization_config",
    "text_config.quantization_config",
    "language_config.quantization_config",
    "llm_config.quantization_config",
    "compression_config",
];

impl Quantization {
    /// Files beside `config.json` that describe a quantization, in order of precedence.
    pub(crate) const SIDE_CARS: [&str; 3] =
        ["quantize_config.json", "quant_config.json", "hf_quant_config.json"];

    /// The quantization described by a model's configuration, if any.
    ///
    /// The keys are `quantization_config` (at the top level or in the text configuration),
    /// `compression_config` and MLX's `quantization`.
    #[must_use]
    pub fn from_config(config: &ModelConfig) -> Option<Self> {
        let mut found = described_in(config.raw().as_object()?)?;
        let notes = found.notes.iter().map(|note| format!("{}.{note}", found.source)).collect();
        found.notes = json::notes_of(config.path(), notes);
        Some(found)
    }

    /// The quantization described by a file beside `config.json`, if any.
    ///
    /// Errors and notes name `path`. Its file name tells the writer: `quantize_config.json` (GPTQ),
    /// `quant_config.json` (AWQ) or `hf_quant_config.json` (`ModelOpt`).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Json`](crate::ErrorKind::Json) if the bytes are not a JSON object;
    /// [`ErrorKind::File`](crate::ErrorKind::File) for an empty file or a Git LFS pointer.
    pub fn from_json(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Option<Self>> {
        JsonFile::from_bytes(path.as_ref(), bytes)
    }

    /// The quantization of a directory: from its configuration, else from a file beside it.
    pub(crate) fn in_directory(
        directory: &Path,
        config: Option<&ModelConfig>,
        max_bytes: u64,
    ) -> Result<Option<Self>> {
        if let Some(found) = config.and_then(Self::from_config) {
            return Ok(Some(found));
        }
        for name in Self::SIDE_CARS {
            let found = Option::<Self>::read_if_there(&directory.join(name), max_bytes)?;
            if let Some(found) = found.flatten() {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// The description in a file beside the configuration; `None` if it describes no weights.
impl JsonFile for Option<Quantization> {
    fn from_object(path: &Path, object: Object, notes: Vec<String>) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut found = read(&object, &name, notes);
        found.notes = json::notes_of(path, found.notes);
        (found.bits.is_some() || found.algorithm.is_some()).then_some(found)
    }
}

/// The description within a configuration.
fn described_in(config: &Object) -> Option<Quantization> {
    let mlx = object_at(config, "quantization").map(|object| (object, "quantization"));
    let mut found = PLACES.iter().filter_map(|place| Some((object_at(config, place)?, *place)));
    // MLX writes its description under two keys and states its method in neither.
    match (found.next(), mlx) {
        (Some((object, place)), None) => Some(read(object, place, Vec::new())),
        (Some((object, place)), Some(_)) if object.contains_key("quant_method") => {
            Some(read(object, place, Vec::new()))
        }
        (_, Some((object, place))) => Some(read(object, place, Vec::new())),
        (None, None) => None,
    }
}

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
        // ONNX exports have a file of this name too, with other content.
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
