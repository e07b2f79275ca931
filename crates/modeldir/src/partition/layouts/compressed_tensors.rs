//! compressed-tensors: words of inputs or whole elements, with zero points and an order of inputs.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | `weight_packed` | as of a plain weight, the last packed in words of the dtype |
//! | `weight_scale` of it, or beside `weight_g_idx` | blocks of the weight; or out alone |
//! | `weight_zero_point` | the same; outputs may be packed in words |
//! | `weight_g_idx` | in: the group of each |
//! | `weight_shape`, `weight_global_scale`, `input_global_scale` | none; experts before them |
//!
//! With `weight_g_idx`, any group may hold any input, so scales and zero points are whole on ranks
//! that split inputs. Four-bit floats (`nvfp4-pack-quantized`) have the same leaves.

use std::num::NonZeroUsize;

use super::plain;
use crate::partition::companion::{self, NO_WEIGHT, blocks, per_word, scaled};
use crate::partition::weight_layout::{Located, Member, OnDisk, Side, WeightLayout};

const PACKED: &str = "weight_packed";

/// The layout of compressed-tensors.
#[derive(Debug)]
pub(super) struct CompressedTensors;

impl WeightLayout for CompressedTensors {
    fn methods(&self) -> &'static [&'static str] {
        &["compressed-tensors", "compressed_tensors"]
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        match tensor.leaf {
            PACKED
            | "weight_shape"
            | "weight_global_scale"
            | "input_global_scale"
            | "weight_g_idx"
            | "weight_zero_point" => true,
            "weight_scale" if has_order(tensor) => true,
            leaf => scaled(leaf)
                .is_some_and(|base| weight(tensor, base).is_some_and(|weight| weight.leaf != base)),
        }
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        match tensor.leaf {
            PACKED => in_weight(tensor, side),
            "weight_shape" | "weight_global_scale" | "input_global_scale" => Ok(None),
            "weight_g_idx" => {
                let dim = tensor.dim_from_end(0).filter(|_| side == Side::In);
                Ok(dim.and_then(|dim| tensor.plain(dim)))
            }
            "weight_zero_point" => zero_point(tensor, side),
            leaf => scales(tensor, scaled(leaf).unwrap_or(leaf), side),
        }
    }

    fn experts(&self, tensor: &Member<'_>) -> Option<usize> {
        match tensor.leaf {
            // Of one matrix these are the lengths of both axes, which are no experts.
            "weight_shape" => (tensor.rank() > 1).then_some(0),
            "weight_global_scale" | "input_global_scale" => {
                companion::experts_of_scales(tensor, weight(tensor, "weight").as_ref())
            }
            leaf => match scaled(leaf) {
                Some(base) => companion::experts_of_scales(tensor, weight(tensor, base).as_ref()),
                None => (tensor.rank() > 2).then_some(0),
            },
        }
    }
}

/// Whether inputs were quantized in an order of their own.
fn has_order(tensor: &Member<'_>) -> bool {
    tensor.has("weight_g_idx")
}

/// The weight with this leaf, packed or not.
fn weight<'a>(tensor: &Member<'a>, leaf: &str) -> Option<Member<'a>> {
    tensor.sibling(leaf).or_else(|| tensor.sibling(&packed(leaf)))
}

fn packed(leaf: &str) -> String {
    format!("{leaf}_packed")
}

/// An axis of a weight.
fn in_weight(weight: &Member<'_>, side: Side) -> Located {
    let Some(dim) = plain::dim(weight, side) else { return Ok(None) };
    let is_packed = weight.leaf == PACKED && weight.dim_from_end(0) == Some(dim);
    let word = weight.tensor.dtype.bits() as usize;
    let per = if is_packed { per_word(weight.quantization, word)? } else { NonZeroUsize::MIN };
    Ok(weight.along(dim, per))
}

/// An axis of the scales of the weight with this leaf.
fn scales(tensor: &Member<'_>, leaf: &str, side: Side) -> Located {
    let Some(weight) = weight(tensor, leaf) else {
        return companion::scales_alone(tensor, plain::dim(tensor, side), side);
    };
    let in_weight = in_weight(&weight, side)?;
    if side == Side::In && has_order(tensor) {
        return Ok(None);
    }
    companion::scales(tensor, &weight, in_weight, side)
}

/// An axis of the zero points of a weight, which may be packed along the outputs.
fn zero_point(tensor: &Member<'_>, side: Side) -> Located {
    let weight = weight(tensor, "weight").ok_or(NO_WEIGHT)?;
    if side == Side::In || tensor.rank() != weight.rank() {
        return scales(tensor, "weight", side);
    }
    let Some(OnDisk { dim, len, .. }) = in_weight(&weight, side)? else { return Ok(None) };
    if tensor.tensor.shape.get(dim) == Some(&len) {
        return Ok(tensor.plain(dim));
    }
    let per = per_word(tensor.quantization, tensor.tensor.dtype.bits() as usize)?;
    // One word for all outputs still has a number for each, unlike one scale.
    if tensor.tensor.shape.get(dim) == Some(&len.div_ceil(per.get())) {
        return Ok(Some(OnDisk { dim, per, stored: NonZeroUsize::MIN, len }));
    }
    blocks(tensor, dim, len, &[])
}
