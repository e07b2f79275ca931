//! `adapter_config.json`: what an adapter of another model changes.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::path::Path;

use serde_json::{Map, Value};

use crate::Result;
use crate::beside::accessors::accessors;
use crate::beside::json_file::JsonFile;
use crate::json::{self, Fields};

/// The fields of `adapter_config.json`, as peft writes it, with the raw JSON.
///
/// A field of the wrong type is absent, with an entry in [`notes`](Self::notes).
///
/// ```
/// use modeldir::beside::AdapterConfig;
///
/// let json = br#"{
///     "peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-3.1-8B",
///     "r": 16, "lora_alpha": 32, "target_modules": ["q_proj", "v_proj"]
/// }"#;
/// let config = AdapterConfig::from_json("adapter_config.json", json)?;
/// assert_eq!((config.r(), config.lora_alpha()), (Some(16), Some(32.0)));
/// assert_eq!(config.target_modules(), ["q_proj", "v_proj"]);
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterConfig {
    peft_type: Option<String>,
    base_model_name_or_path: Option<String>,
    r: Option<usize>,
    lora_alpha: Option<f64>,
    target_modules: Vec<String>,
    target_pattern: Option<String>,
    raw: Value,
    notes: Vec<String>,
}

impl AdapterConfig {
    /// Parses the bytes of an `adapter_config.json`. Errors and notes name `path`.
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

    /// Reads `adapter_config.json` of a directory, if present.
    pub(crate) fn in_directory(directory: &Path, max_bytes: u64) -> Result<Option<Self>> {
        Self::read_if_there(&directory.join("adapter_config.json"), max_bytes)
    }

    /// The kind of adapter, such as `LORA`.
    #[must_use]
    pub fn peft_type(&self) -> Option<&str> {
        self.peft_type.as_deref()
    }

    /// The model that the adapter was trained for: a repository, or a path where it was trained.
    #[must_use]
    pub fn base_model_name_or_path(&self) -> Option<&str> {
        self.base_model_name_or_path.as_deref()
    }

    /// The modules that are adapted, as a list of names or of their last parts; empty if the file
    /// has no list.
    #[must_use]
    pub fn target_modules(&self) -> &[String] {
        &self.target_modules
    }

    /// The modules that are adapted, as a regular expression or the word `all-linear`, where the
    /// file has no list.
    #[must_use]
    pub fn target_pattern(&self) -> Option<&str> {
        self.target_pattern.as_deref()
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

impl JsonFile for AdapterConfig {
    fn from_object(path: &Path, object: Map<String, Value>, notes: Vec<String>) -> Self {
        let mut fields = Fields::new(&object, notes);
        let targets = fields.find(&["target_modules"], "a list of strings or a string", targets);
        let (target_modules, target_pattern) = targets.unwrap_or_default();
        Self {
            peft_type: fields.string(&["peft_type"]).map(str::to_owned),
            base_model_name_or_path: fields.string(&["base_model_name_or_path"]).map(str::to_owned),
            r: fields.usize(&["r"]),
            lora_alpha: fields.f64(&["lora_alpha"]),
            target_modules,
            target_pattern,
            notes: json::notes_of(path, fields.into_notes()),
            raw: Value::Object(object),
        }
    }
}

/// The adapted modules: a list, or one pattern.
fn targets(value: &Value) -> Option<(Vec<String>, Option<String>)> {
    if let Value::String(pattern) = value {
        return Some((Vec::new(), Some(pattern.clone())));
    }
    let names = value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
    Some((names.collect::<Option<_>>()?, None))
}

accessors! { AdapterConfig {
    /// The rank of the two factors of each change.
    r: Option<usize>,
    /// What the product of the factors is multiplied by, before it is divided by [`r`](Self::r) (by
    /// its square root where `use_rslora` in [`raw`](Self::raw) is true).
    lora_alpha: Option<f64>,
} }

#[cfg(test)]
mod tests {
    use super::AdapterConfig;

    fn config(json: &str) -> AdapterConfig {
        AdapterConfig::from_json("adapter_config.json", json.as_bytes()).unwrap()
    }

    #[test]
    fn each_field_is_read_from_its_own_name() {
        let config = config(
            r#"{
                "peft_type": "LORA", "base_model_name_or_path": "org/base", "r": 8,
                "lora_alpha": 16, "target_modules": ["q"], "task_type": "CAUSAL_LM"
            }"#,
        );
        assert_eq!(config.peft_type(), Some("LORA"));
        assert_eq!(config.base_model_name_or_path(), Some("org/base"));
        assert_eq!((config.r(), config.lora_alpha()), (Some(8), Some(16.0)));
        assert_eq!(config.target_modules(), ["q"]);
    }

    #[test]
    fn targets_are_a_list_or_a_pattern() {
        let listed = config(r#"{"target_modules": ["q_proj", "v_proj"]}"#);
        assert_eq!(listed.target_modules(), ["q_proj", "v_proj"]);
        assert_eq!(listed.target_pattern(), None);
        let pattern = config(r#"{"target_modules": "all-linear"}"#);
        assert_eq!(pattern.target_modules(), [""; 0]);
        assert_eq!(pattern.target_pattern(), Some("all-linear"));
        for absent in ["{}", r#"{"target_modules": null}"#] {
            let absent = config(absent);
            assert!(absent.target_modules().is_empty() && absent.target_pattern().is_none());
            assert_eq!(absent.notes(), [""; 0]);
        }
    }

    #[test]
    fn a_field_of_the_wrong_type_leaves_the_others_alone() {
        let config = config(
            r#"{"r": "8", "lora_alpha": 16, "target_modules": ["q", 1], "peft_type": "LORA"}"#,
        );
        assert_eq!((config.r(), config.lora_alpha()), (None, Some(16.0)));
        assert_eq!((config.peft_type(), config.base_model_name_or_path()), (Some("LORA"), None));
        assert_eq!(
            config.notes(),
            [
                "adapter_config.json: target_modules: expected a list of strings or a string, found a list",
                "adapter_config.json: r: expected a whole number, found a string",
            ]
        );
        assert_eq!(config.raw()["r"], "8");
    }

    #[test]
    fn a_directory_may_have_none() {
        let dir = tempfile::tempdir().unwrap();
        let read = || AdapterConfig::in_directory(dir.path(), 100);
        assert_eq!(read().unwrap(), None);
        let path = dir.path().join("adapter_config.json");
        std::fs::write(&path, r#"{"r": 4}"#).unwrap();
        assert_eq!(read().unwrap().unwrap().r(), Some(4));
        assert_eq!(AdapterConfig::from_file(&path).unwrap().r(), Some(4));
    }

    #[test]
    fn broken_json_is_an_error_with_the_path() {
        let error = AdapterConfig::from_json("x/adapter_config.json", b"{").unwrap_err();
        assert!(error.to_string().starts_with("x/adapter_config.json: line 1 column"), "{error}");
    }
}
