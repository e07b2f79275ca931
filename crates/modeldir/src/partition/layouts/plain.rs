//! Weights as a framework holds them: one element on disk for each element of the layer.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | `weight`, `…_proj`, `sinks` | out, in, and those of a kernel; experts before both |
//! | the same of `Conv1D`, which rules call transposed | in, out; experts before both |
//! | `bias`, `…_bias` | out; experts before it |
//!
//! All of them are floats: packed weights are integers. A rule of the caller may say that any other
//! tensor is plain.

use tensorfile::Dtype;

use crate::partition::layout::Layout;
use crate::partition::weight_layout::{Located, Member, Side, WeightLayout};

/// A plain weight and its bias.
#[derive(Debug)]
pub(in crate::partition) struct Plain;

impl WeightLayout for Plain {
    fn methods(&self) -> &'static [&'static str] {
        &[]
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        let is_known =
            is_of_layer(tensor.leaf) || tensor.leaf.ends_with("_proj") || tensor.leaf == "sinks";
        is_known && is_float(tensor.tensor.dtype)
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        let dim = match is_bias(tensor.leaf) {
            true => tensor.dim_from_end(0).filter(|_| side == Side::Out),
            false => dim(tensor, side),
        };
        Ok(dim.and_then(|dim| tensor.plain(dim)))
    }

    fn experts(&self, tensor: &Member<'_>) -> Option<usize> {
        let axes = if is_bias(tensor.leaf) { 1 } else { 2 };
        (tensor.rank() > axes).then_some(0)
    }
}

/// Whether a leaf is a weight or bias, whose only element may be a layer's only output.
pub(in crate::partition) fn is_of_layer(leaf: &str) -> bool {
    leaf == "weight" || is_bias(leaf)
}

/// Whether elements are floats of any width.
pub(in crate::partition) fn is_float(dtype: Dtype) -> bool {
    !matches!(
        dtype,
        Dtype::Bool
            | Dtype::U8
            | Dtype::I8
            | Dtype::U16
            | Dtype::I16
            | Dtype::U32
            | Dtype::I32
            | Dtype::U64
            | Dtype::I64
            | Dtype::C64
    )
}

fn is_bias(leaf: &str) -> bool {
    leaf.ends_with("bias")
}

/// The dimension of an axis in a weight.
pub(in crate::partition) fn dim(weight: &Member<'_>, side: Side) -> Option<usize> {
    let [out, inputs] = match (weight.rank(), weight.order) {
        (0, _) => [None, None],
        (1, _) => [Some(0), None],
        (2, Layout::Transposed) => [Some(1), Some(0)],
        (3, Layout::Transposed) => [Some(2), Some(1)],
        (3, _) => [Some(1), Some(2)],
        _ => [Some(0), Some(1)],
    };
    if side == Side::Out { out } else { inputs }
}
