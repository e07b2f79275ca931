//! `generation_config.json`: the defaults for text generation.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::path::Path;

use serde_json::{Map, Value};

use crate::Result;
use crate::beside::accessors::accessors;
use crate::beside::json_file::JsonFile;
use crate::json::{self, Fields};

/// The fields of `generation_config.json`, with the raw JSON.
///
/// A field of the wrong type is absent, with an entry in [`notes`](Self::notes).
///
/// ```
/// use modeldir::beside::GenerationConfig;
///
/// let json = br#"{"eos_token_id": [1, 106], "temperature": 0.6, "top_k": 64}"#;
/// let config = GenerationConfig::from_json("generation_config.json", json)?;
/// assert_eq!(config.eos_token_ids(), [1, 106]);
/// assert_eq!(config.temperature(), Some(0.6));
/// assert_eq!(config.do_sample(), None);
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GenerationConfig {
    bos_token_ids: Vec<u32>,
    eos_token_ids: Vec<u32>,
    pad_token_ids: Vec<u32>,
    do_sample: Option<bool>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<i64>,
    min_p: Option<f64>,
    repetition_penalty: Option<f64>,
    max_length: Option<usize>,
    max_new_tokens: Option<usize>,
    raw: Value,
    notes: Vec<String>,
}

impl GenerationConfig {
    /// Parses the bytes of a `generation_config.json`. Errors and notes name `path`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Json`](crate::ErrorKind::Json) if the bytes are not a JSON object;
    /// [`ErrorKind::File`](crate::ErrorKind::File) for an empty file or a Git LFS pointer.
    pub fn from_json(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Self> {
        Self::from_bytes(path.as_ref(), bytes)
    }

    /// Reads and parses a file of at most 64 MiB.
    ///
    /// # Errors
    ///
    /// The errors of [`from_json`](Self::from_json), [`ErrorKind::File`](crate::ErrorKind::File) if
    /// the file cannot be read, and [`ErrorKind::Limit`](crate::ErrorKind::Limit) if it is longer.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        Self::read(path.as_ref())
    }

    /// Reads `generation_config.json` of a directory, if present.
    pub(crate) fn in_directory(directory: &Path, max_bytes: u64) -> Result<Option<Self>> {
        Self::read_if_there(&directory.join("generation_config.json"), max_bytes)
    }

    /// The ids that begin a text, usually one.
    #[must_use]
    pub fn bos_token_ids(&self) -> &[u32] {
        &self.bos_token_ids
    }

    /// The ids that end a text. There may be more than in `config.json`; these take precedence.
    #[must_use]
    pub fn eos_token_ids(&self) -> &[u32] {
        &self.eos_token_ids
    }

    /// The ids that pad a batch, usually one.
    #[must_use]
    pub fn pad_token_ids(&self) -> &[u32] {
        &self.pad_token_ids
    }

    /// The whole file as JSON.
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

impl JsonFile for GenerationConfig {
    fn from_object(path: &Path, object: Map<String, Value>, notes: Vec<String>) -> Self {
        let mut fields = Fields::new(&object, notes);
        Self {
            bos_token_ids: fields.token_ids(&["bos_token_id"]),
            eos_token_ids: fields.token_ids(&["eos_token_id"]),
            pad_token_ids: fields.token_ids(&["pad_token_id"]),
            do_sample: fields.bool(&["do_sample"]),
            temperature: fields.f64(&["temperature"]),
            top_p: fields.f64(&["top_p"]),
            top_k: fields.i64(&["top_k"]),
            min_p: fields.f64(&["min_p"]),
            repetition_penalty: fields.f64(&["repetition_penalty"]),
            max_length: fields.usize(&["max_length"]),
            max_new_tokens: fields.usize(&["max_new_tokens"]),
            notes: json::notes_of(path, fields.into_notes()),
            raw: Value::Object(object),
        }
    }
}

accessors! { GenerationConfig {
    /// Whether tokens are sampled; if false, the most likely token is taken.
    do_sample: Option<bool>,
    /// The divisor of the logits before sampling.
    temperature: Option<f64>,
    /// Sampling is limited to the smallest set of tokens with at least this probability in total.
    top_p: Option<f64>,
    /// Sampling is limited to this many of the most likely tokens; 0 and -1 mean all.
    top_k: Option<i64>,
    /// Sampling excludes tokens below this fraction of the highest probability.
    min_p: Option<f64>,
    /// The penalty for tokens already present; 1 means none.
    repetition_penalty: Option<f64>,
    /// The maximum length in tokens, prompt included.
    max_length: Option<usize>,
    /// The maximum length of the answer in tokens, prompt excluded.
    max_new_tokens: Option<usize>,
} }

#[cfg(test)]
mod tests {
    use super::GenerationConfig;

    fn config(json: &str) -> GenerationConfig {
        GenerationConfig::from_json("generation_config.json", json.as_bytes()).unwrap()
    }

    #[test]
    fn each_field_is_read_from_its_own_name() {
        // No two values are equal, so that no field can stand for another.
        let config = config(
            r#"{
                "bos_token_id": 1, "eos_token_id": [2, 3], "pad_token_id": 4, "do_sample": true,
                "temperature": 0.5, "top_p": 0.75, "top_k": 6, "min_p": 0.25,
                "repetition_penalty": 1.5, "max_length": 7, "max_new_tokens": 8
            }"#,
        );
        assert_eq!(config.bos_token_ids(), [1]);
        assert_eq!(config.eos_token_ids(), [2, 3]);
        assert_eq!(config.pad_token_ids(), [4]);
        assert_eq!(config.do_sample(), Some(true));
        assert_eq!(config.temperature(), Some(0.5));
        assert_eq!(config.top_p(), Some(0.75));
        assert_eq!(config.top_k(), Some(6));
        assert_eq!(config.min_p(), Some(0.25));
        assert_eq!(config.repetition_penalty(), Some(1.5));
        assert_eq!((config.max_length(), config.max_new_tokens()), (Some(7), Some(8)));
        assert_eq!(config.notes(), [""; 0]);
    }

    #[test]
    fn end_tokens_are_one_or_many() {
        assert_eq!(config(r#"{"eos_token_id": 2}"#).eos_token_ids(), [2]);
        assert_eq!(config(r#"{"eos_token_id": [2, 3]}"#).eos_token_ids(), [2, 3]);
        assert_eq!(config(r#"{"eos_token_id": null}"#).eos_token_ids(), [0; 0]);
    }

    #[test]
    fn a_field_of_the_wrong_type_leaves_the_others_alone() {
        let config = config(r#"{"temperature": "0.6", "top_p": 1, "top_k": -1}"#);
        assert_eq!(
            (config.temperature(), config.top_p(), config.top_k()),
            (None, Some(1.0), Some(-1))
        );
        assert_eq!(
            config.notes(),
            ["generation_config.json: temperature: expected a number, found a string"]
        );
    }

    #[test]
    fn a_directory_may_have_none() {
        let dir = tempfile::tempdir().unwrap();
        let read = || GenerationConfig::in_directory(dir.path(), 100);
        assert_eq!(read().unwrap(), None);
        std::fs::write(dir.path().join("generation_config.json"), r#"{"top_k": 1}"#).unwrap();
        assert_eq!(read().unwrap().unwrap().top_k(), Some(1));
    }

    #[test]
    fn broken_json_is_an_error_with_the_path() {
        let error = GenerationConfig::from_json("x/generation_config.json", b"{").unwrap_err();
        assert!(
            error.to_string().starts_with("x/generation_config.json: line 1 column"),
            "{error}"
        );
    }
}
