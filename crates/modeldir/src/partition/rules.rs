//! `Partition`: the rules for a model.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rule::Rule;
use super::tp::{Misaligned, Uneven};
use crate::{Result, json};

/// Rules that select the part of each tensor for each rank of a distributed job.
///
/// A [`Rule`] matches tensors by name and says how they are divided: along outputs or inputs, by
/// heads, by experts, or by pipeline stages. A [`Topology`](super::Topology) describes one rank.
/// From both, [`cut`](Self::cut) selects the parts of that rank. Partitions, rules and topologies
/// have a JSON form.
///
/// ```
/// use modeldir::partition::TensorShape;
/// use modeldir::{Dtype, Partition, Rank, Selection, Topology};
///
/// let partition: Partition = serde_json::from_str(r#"{"rules": [
///     {"match": "**.(q|k|v)_proj.*", "tp": "col"},
///     {"match": "**.o_proj.*", "tp": "row"}
/// ]}"#)?;
/// let tensors = [
///     TensorShape { name: "layers.0.norm.weight", dtype: Dtype::BF16, shape: &[64] },
///     TensorShape { name: "layers.0.o_proj.weight", dtype: Dtype::BF16, shape: &[64, 128] },
///     TensorShape { name: "layers.0.q_proj.weight", dtype: Dtype::BF16, shape: &[128, 64] },
/// ];
/// let cut = partition.cut(&Topology::tensor_parallel(Rank::new(1, 2)?), None, &tensors)?;
/// assert_eq!(cut.parts, [
///     Some(Selection::all()),
///     Some(Selection::all().with_range(1, 64..128)),
///     Some(Selection::all().with_range(0, 64..128)),
/// ]);
/// assert_eq!(cut.report.unmatched, ["layers.0.norm.weight"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Partition {
    /// The rules in order of priority: for each field of a tensor, the first rule that matches and
    /// sets it wins.
    pub rules: Vec<Rule>,
    /// What to do with lengths that do not divide evenly.
    pub uneven: Uneven,
    /// What to do with cuts that fall inside a block of a quantized tensor.
    pub misaligned: Misaligned,
    /// What to do with layers beyond `num_layers`, such as those for multi-token prediction.
    pub extra_layers: ExtraLayers,
    /// What to do with rules that match no tensor, and with tensors that no rule matches.
    pub unmatched: Unmatched,
    /// The number of layers; `None` takes it from the names of tensors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_layers: Option<usize>,
    /// The number of experts; `None` takes it from names and shapes of tensors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_experts: Option<usize>,
}

/// What to do with rules that match no tensor, and with tensors that no rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unmatched {
    /// List them in the [report](super::PartitionReport).
    #[default]
    Report,
    /// Fail with an error that names all of them.
    Error,
}

/// What to do with extra layers after those of the model, with or without a pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ExtraLayers {
    /// The last stage holds them.
    #[default]
    Last,
    /// No rank holds them.
    Skip,
}

impl Partition {
    /// Reads rules from a JSON file of at most 64 MiB.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, and as [`from_json`](Self::from_json).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = json::read(path, json::MaxBytes::FIXED)?;
        from_text(&text).map_err(|error| error.at(path))
    }

    /// Reads rules from the bytes of a JSON file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Json`](crate::ErrorKind::Json) if the bytes are not valid rules;
    /// [`ErrorKind::Threads`](crate::ErrorKind::Threads) if the JSON is deeply nested and the
    /// thread to parse it cannot be started.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        from_text(json::text(bytes)?)
    }

    /// Adds rules before all others, so that they take precedence.
    #[must_use]
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.splice(0..0, rules);
        self
    }

    /// Adds the rules of another partition after its own, for example built-in rules after those of
    /// a file.
    ///
    /// `num_layers` and `num_experts` come from `other` if they are `None` here. All other fields
    /// keep their values.
    ///
    /// ```
    /// use modeldir::{ModelConfig, Partition};
    ///
    /// let json = br#"{"model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2}"#;
    /// let config = ModelConfig::from_json("config.json", json)?;
    /// let own = br#"{"rules": [{"match": "lm_head.*", "tp": "replicate"}], "uneven": "chunk"}"#;
    /// let partition = Partition::from_json(own)?.or(Partition::for_config(&config)?);
    /// assert_eq!(partition.num_layers, Some(2));
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.rules.extend(other.rules);
        Self {
            num_layers: self.num_layers.or(other.num_layers),
            num_experts: self.num_experts.or(other.num_experts),
            ..self
        }
    }
}

/// Reads a value from the text of a JSON file.
pub(super) fn from_text<T: DeserializeOwned + Send>(text: &str) -> Result<T> {
    Ok(json::from_str(text)?.map_err(|error| json::syntax_error(text, text, &error))?)
}

#[cfg(test)]
mod tests {
    use super::Partition;
    use crate::ErrorKind;

    fn read(json: &str) -> Partition {
        Partition::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn the_rules_of_another_follow_and_its_numbers_fill_in() {
        let own = read(r#"{"rules": [{"match": "a"}], "uneven": "chunk", "num_experts": 2}"#);
        let other = read(
            r#"{"rules": [{"match": "b"}], "uneven": "balanced", "num_layers": 3, "num_experts": 4}"#,
        );
        let expected = read(
            r#"{"rules": [{"match": "a"}, {"match": "b"}], "uneven": "chunk", "num_layers": 3,
                "num_experts": 2}"#,
        );
        assert_eq!(own.or(other), expected);
    }

    #[test]
    fn a_file_of_rules_is_named_in_its_errors() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rules.json");
        assert!(matches!(Partition::from_file(&path).unwrap_err().kind(), ErrorKind::File(_)));
        std::fs::write(&path, r#"{"uneven": "chunk"}"#).unwrap();
        assert_eq!(Partition::from_file(&path).unwrap(), read(r#"{"uneven": "chunk"}"#));
        std::fs::write(&path, r#"{"uneven": "chunks"}"#).unwrap();
        let error = Partition::from_file(&path).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Json(_)), "{error}");
        assert_eq!(error.path(), Some(&*path));
    }
}
