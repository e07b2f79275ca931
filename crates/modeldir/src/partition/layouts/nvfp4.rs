//! NVFP4 as `ModelOpt` writes it: two 4-bit floats in a byte, a scale for each block of inputs, and
//! one scale for the whole weight.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | `weight`, of bytes and beside `weight_scale_2` | as of a plain weight, the last two in one |
//! | `weight_scale` of it | the same, blocks of inputs |
//! | `weight_scale_2` | none; experts, if the weight has them |

use std::num::NonZeroUsize;

use tensorfile::Dtype;

use super::plain;
use crate::Quantization;
use crate::partition::companion;
use crate::partition::weight_layout::{Located, Member, OnDisk, Side, WeightLayout};

/// Inputs that share a scale.
const BLOCK: usize = 16;

/// Weights in a byte.
const PER_BYTE: usize = 2;

/// The layout of NVFP4.
#[derive(Debug)]
pub(super) struct Nvfp4;

impl WeightLayout for Nvfp4 {
    fn methods(&self) -> &'static [&'static str] {
        &["modelopt"]
    }

    /// Goes by the algorithm, since the methods that have it have others too.
    fn is_named_by(&self, quantization: &Quantization) -> bool {
        quantization.algorithm().is_some_and(|name| name.to_lowercase().contains("nvfp4"))
    }

    fn block(&self) -> Option<usize> {
        Some(BLOCK)
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        match tensor.leaf {
            "weight_scale_2" => true,
            "weight" => is_packed(tensor),
            "weight_scale" => weight(tensor).is_some(),
            _ => false,
        }
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        match tensor.leaf {
            "weight" => Ok(in_weight(tensor, side)),
            "weight_scale_2" => Ok(None),
            _ => match weight(tensor) {
                Some(weight) => companion::scales(tensor, &weight, in_weight(&weight, side), side),
                None => Ok(None),
            },
        }
    }

    fn experts(&self, tensor: &Member<'_>) -> Option<usize> {
        match tensor.leaf {
            "weight" => plain::Plain.experts(tensor),
            "weight_scale_2" => {
                companion::experts_of_scales(tensor, tensor.sibling("weight").as_ref())
            }
            _ => companion::experts_of_scales(tensor, weight(tensor).as_ref()),
        }
    }
}

/// Whether each byte holds two weights instead of one. Scales of blocks are 8-bit floats.
fn is_packed(weight: &Member<'_>) -> bool {
    let scale = weight.sibling("weight_scale");
    weight.tensor.dtype == Dtype::U8
        && weight.has("weight_scale_2")
        && scale.is_none_or(|scale| scale.tensor.dtype == Dtype::F8E4M3)
}

/// The packed weight of a module.
fn weight<'a>(tensor: &Member<'a>) -> Option<Member<'a>> {
    tensor.sibling("weight").filter(is_packed)
}

/// An axis of a packed weight.
fn in_weight(weight: &Member<'_>, side: Side) -> Option<OnDisk> {
    let dim = plain::dim(weight, side)?;
    let is_packed = weight.dim_from_end(0) == Some(dim);
    weight.along(dim, NonZeroUsize::new(if is_packed { PER_BYTE } else { 1 })?)
}
