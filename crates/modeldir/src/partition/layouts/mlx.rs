//! MLX: 32-bit words of inputs, and a scale and a bias for each group of inputs.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | `weight`, of words and beside `scales` | as of a plain weight, the last packed in words |
//! | `scales`, `biases` | the same, groups of inputs |

use std::num::NonZeroUsize;

use tensorfile::Dtype;

use super::plain;
use crate::partition::companion::{self, per_word};
use crate::partition::weight_layout::{Located, Member, Side, WeightLayout};

/// Bits of a word.
const WORD: usize = 32;

/// The layout of MLX.
#[derive(Debug)]
pub(super) struct Mlx;

impl WeightLayout for Mlx {
    fn methods(&self) -> &'static [&'static str] {
        &["mlx"]
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        match tensor.leaf {
            "scales" | "biases" => true,
            "weight" => is_packed(tensor),
            _ => false,
        }
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        if tensor.leaf == "weight" {
            return in_weight(tensor, side);
        }
        match tensor.sibling("weight") {
            Some(weight) => companion::scales(tensor, &weight, in_weight(&weight, side)?, side),
            None => companion::scales_alone(tensor, plain::dim(tensor, side), side),
        }
    }
}

/// Whether the words are packed weights.
fn is_packed(weight: &Member<'_>) -> bool {
    weight.tensor.dtype == Dtype::U32 && weight.has("scales")
}

/// An axis of a weight, packed or not.
fn in_weight(weight: &Member<'_>, side: Side) -> Located {
    let Some(dim) = plain::dim(weight, side) else { return Ok(None) };
    let is_last = weight.dim_from_end(0) == Some(dim);
    let per = match is_last && is_packed(weight) {
        true => per_word(weight.quantization, WORD)?,
        false => NonZeroUsize::MIN,
    };
    Ok(weight.along(dim, per))
}
