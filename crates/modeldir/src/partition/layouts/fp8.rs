//! 8-bit floats or integers, not packed, with a scale for each block, for each output, or for the
//! whole weight.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | `weight`, and parameters of any name | as of a plain weight |
//! | `…_scale`, `…_scale_inv` of it | blocks of the weight; or out alone; or none |
//!
//! Experts lie before these, unless one scale is for all experts. `ModelOpt` stores scales of blocks
//! with a dimension of 1 after each.

use tensorfile::Dtype;

use super::plain::{self, Plain};
use crate::partition::companion::{self, scaled};
use crate::partition::weight_layout::{Located, Member, Side, WeightLayout};

/// The layout of 8-bit weights with scales beside them.
#[derive(Debug)]
pub(super) struct Fp8;

impl WeightLayout for Fp8 {
    fn methods(&self) -> &'static [&'static str] {
        &["fp8", "fbgemm_fp8", "modelopt", "compressed-tensors", "quark"]
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        match scaled(tensor.leaf) {
            Some(_) => true,
            None => {
                let has = |suffix| tensor.has(&format!("{}{suffix}", tensor.leaf));
                is_of_bytes(tensor.tensor.dtype) && (has("_scale") || has("_scale_inv"))
            }
        }
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        if scaled(tensor.leaf).is_none() {
            return Plain.axis(tensor, side);
        }
        match weight(tensor) {
            Some(weight) => companion::scales(tensor, &weight, Plain.axis(&weight, side)?, side),
            None => companion::scales_alone(tensor, plain::dim(tensor, side), side),
        }
    }

    fn experts(&self, tensor: &Member<'_>) -> Option<usize> {
        match scaled(tensor.leaf) {
            Some(_) => companion::experts_of_scales(tensor, weight(tensor).as_ref()),
            None => Plain.experts(tensor),
        }
    }
}

/// Whether elements are 8-bit numbers, not packed.
fn is_of_bytes(dtype: Dtype) -> bool {
    dtype == Dtype::I8 || (plain::is_float(dtype) && dtype.bits() == 8)
}

/// The weight of these scales.
fn weight<'a>(tensor: &Member<'a>) -> Option<Member<'a>> {
    tensor.sibling(scaled(tensor.leaf)?)
}
