//! bitsandbytes: 4-bit weights flattened to a column before blocks are cut, or 8-bit ones with a
//! scale for each output.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | any, beside `….absmax` or `….quant_map`, in any dtype | cannot be cut: blocks cross rows |
//! | `absmax`, `quant_map`, `nested_absmax`, `nested_quant_map`, `bitsandbytes__…` | cannot be cut |
//! | `weight`, of 8-bit integers and beside `SCB` | out; in |
//! | `SCB` | out |
//! | `weight_format` | none; experts, if it holds more than one |
//!
//! A column whose companions are not there is a 4-bit weight if the configuration says so.

use tensorfile::Dtype;

use super::plain;
use crate::Quantization;
use crate::partition::weight_layout::{Located, Member, Side, WeightLayout};

const IS_FLATTENED: &str = "bitsandbytes stores it flattened, in blocks that cross rows";

/// The layout of bitsandbytes.
#[derive(Debug)]
pub(super) struct Bitsandbytes;

impl WeightLayout for Bitsandbytes {
    fn methods(&self) -> &'static [&'static str] {
        &["bitsandbytes"]
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        match tensor.leaf {
            "SCB" | "weight_format" => true,
            leaf => is_of_four_bits(leaf) || is_of_eight_bits(tensor) || is_flattened(tensor),
        }
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        match tensor.leaf {
            "SCB" => plain::Plain.axis(tensor, side),
            "weight_format" => Ok(None),
            // Outputs before inputs, also where the weight of a `Conv1D` was quantized.
            "weight" if is_of_eight_bits(tensor) => {
                Ok(tensor.plain(if side == Side::Out { 0 } else { 1 }))
            }
            _ => Err(IS_FLATTENED.into()),
        }
    }

    fn experts(&self, tensor: &Member<'_>) -> Option<usize> {
        let is_stack = match tensor.leaf {
            "weight_format" => tensor.tensor.shape.first().is_some_and(|len| *len > 1),
            _ => tensor.rank() > 2,
        };
        is_stack.then_some(0)
    }
}

/// Whether a leaf is that of a companion of a 4-bit weight.
fn is_of_four_bits(leaf: &str) -> bool {
    matches!(leaf, "absmax" | "quant_map" | "nested_absmax" | "nested_quant_map")
        || leaf.starts_with("bitsandbytes__")
}

/// Whether a tensor is a matrix of 8-bit integers with a scale for each output.
fn is_of_eight_bits(tensor: &Member<'_>) -> bool {
    tensor.leaf == "weight"
        && tensor.tensor.dtype == Dtype::I8
        && tensor.rank() == 2
        && tensor.has("SCB")
}

/// Whether a tensor is a 4-bit weight, packed in elements of any dtype.
fn is_flattened(tensor: &Member<'_>) -> bool {
    if !matches!(tensor.tensor.shape, [_, 1] | [1, _]) {
        return false;
    }
    let is_column = matches!(tensor.tensor.shape, [_, 1]);
    let has = |companion| tensor.has(&format!("{}.{companion}", tensor.leaf));
    let says_so =
        |found: &Quantization| found.method() == Some("bitsandbytes") && found.bits() == Some(4);
    has("absmax")
        || has("quant_map")
        || (is_column && tensor.leaf == "weight" && tensor.quantization.is_some_and(says_so))
}
