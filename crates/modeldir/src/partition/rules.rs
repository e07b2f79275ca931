//! `Partition`: the rules for a model.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rule::Rule;
use super::tp::{Misaligned, Uneven};
use crate::{Result, json};

/// The part of a model for each rank of a distributed job, as rules about names.
///
/// Rules say how a tensor is divided: along outputs or inputs, into heads, by expert, by stage. A
/// [`Topology`] says which rank of how many takes its part. From both, [`cut`](Self::cut) selects
/// the part of each tensor. All of these have a JSON form.
///
/// ```
/// use modeldir::{Partition, TensorShape, Topology};
/// use tensorfile::{Dtype, Selection};
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
/// let cut = partition.cut(&Topology::tensor_parallel(1, 2)?, None, &tensors)?;
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
    /// The rules; of each field of a tensor the first that matches and sets it counts.
    pub rules: Vec<Rule>,
    /// What to do with lengths that do not divide evenly.
    pub uneven: Uneven,
    /// What to do with cuts within a block of a quantized tensor.
    pub misaligned: Misaligned,
    /// What to do with extra layers after `num_layers`, which predict several tokens ahead.
    pub extra_layers: ExtraLayers,
    /// Whether rules without a name and names without a rule are errors, not only reported.
    pub strict: bool,
    /// The number of layers; if it is not given, the names tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_layers: Option<usize>,
    /// The number of experts; by default it is taken from names and shapes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_experts: Option<usize>,
}

/// Where layers go that come after those of the model, in a pipeline and without one.
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
    /// Reads rules from the bytes of a JSON file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Json`](crate::ErrorKind::Json) if the bytes are not such rules;
    /// [`ErrorKind::Threads`](crate::ErrorKind::Threads) if they nest deep, which takes a thread, and
    /// none can be started.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        from_bytes(bytes)
    }

    /// The same with these rules before all others, so that they count first.
    #[must_use]
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.splice(0..0, rules);
        self
    }
}

/// Reads a value from the bytes of a JSON file.
pub(super) fn from_bytes<T: DeserializeOwned + Send>(bytes: &[u8]) -> Result<T> {
    let text = json::text(bytes)?;
    Ok(json::from_str(text)?.map_err(|error| json::syntax_error(text, text, &error))?)
}
