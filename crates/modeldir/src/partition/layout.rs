//! The dimensions of a tensor on which the axes of its layer lie.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

/// The dimensions of a tensor on which the axes of its layer lie.
///
/// In JSON `"linear"`, `"transposed"`, or the axes: `{"out": 1, "in": [0, 8], "expert": 0}`, where
/// a pair is a dimension and the number of elements along the axis in one element on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Layout {
    /// Outputs, then inputs, as PyTorch stores linear layers; experts before both. The companions
    /// of a quantized weight, such as scales, are recognized by name.
    #[default]
    Linear,
    /// Inputs, then outputs, as in GPT-2; experts before both. The rest as `Linear`.
    Transposed,
    /// The stated axes; nothing is cut along an axis that is not stated.
    #[serde(untagged)]
    Axes(Axes),
}

/// The dimensions of axes, counted from 0 for the outermost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axes {
    /// The dimension of the outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<Along>,
    /// The dimension of the inputs.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Along>,
    /// The dimension of the experts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert: Option<usize>,
}

/// A dimension, and the number of elements along the axis in one element on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "AlongForm", into = "AlongForm")]
pub struct Along {
    /// The dimension.
    pub dim: usize,
    /// Elements along the axis in one element on disk: those packed in a word, or those of a block
    /// that shares a scale.
    pub per: NonZeroUsize,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a dimension, or [dimension, elements packed in one]")]
enum AlongForm {
    Plain(usize),
    Packed(usize, NonZeroUsize),
}

impl From<AlongForm> for Along {
    fn from(form: AlongForm) -> Self {
        match form {
            AlongForm::Plain(dim) => Self { dim, per: NonZeroUsize::MIN },
            AlongForm::Packed(dim, per) => Self { dim, per },
        }
    }
}

impl From<Along> for AlongForm {
    fn from(Along { dim, per }: Along) -> Self {
        if per == NonZeroUsize::MIN { Self::Plain(dim) } else { Self::Packed(dim, per) }
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;
    use serde_json::json;

    #[test]
    fn every_form_is_written_as_it_was_read() {
        for form in [
            json!("linear"),
            json!("transposed"),
            json!({}),
            json!({"out": 1, "in": [0, 8], "expert": 2}),
        ] {
            let read: Layout = serde_json::from_value(form.clone()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), form);
        }
        for form in [json!("conv"), json!({"out": [0, 0]}), json!({"ins": 0})] {
            assert!(serde_json::from_value::<Layout>(form.clone()).is_err(), "{form}");
        }
    }
}
