//! MXFP4: blocks of 4-bit floats with a scale each.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | `…_blocks` | out; blocks of inputs; the bytes of a block |
//! | `…_scales` | out; blocks of inputs |
//!
//! Experts lie before all of these. Tensors of these names with fewer dimensions are plain.

use std::num::NonZeroUsize;

use crate::partition::weight_layout::{Located, Member, Side, WeightLayout};

/// Inputs in a block.
const BLOCK: usize = 32;

/// The layout of MXFP4.
#[derive(Debug)]
pub(super) struct Mxfp4;

impl WeightLayout for Mxfp4 {
    fn methods(&self) -> &'static [&'static str] {
        &["mxfp4"]
    }

    fn block(&self) -> Option<usize> {
        Some(BLOCK)
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        inputs(tensor).is_some()
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        let Some(inputs) = inputs(tensor) else { return Ok(None) };
        Ok(match side {
            Side::Out => inputs.checked_sub(1).and_then(|outputs| tensor.plain(outputs)),
            Side::In => NonZeroUsize::new(BLOCK).and_then(|block| tensor.along(inputs, block)),
        })
    }
}

/// The dimension of blocks of inputs, if the leaf is one of this layout.
fn inputs(tensor: &Member<'_>) -> Option<usize> {
    let of_a_block = match tensor.leaf {
        leaf if leaf.ends_with("_blocks") => 1,
        leaf if leaf.ends_with("_scales") => 0,
        _ => return None,
    };
    tensor.dim_from_end(of_a_block).filter(|inputs| *inputs > 0)
}
