//! Shared by the layouts: weights packed in words, and scales for blocks of a weight.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::num::NonZeroUsize;

use super::weight_layout::{Located, Member, OnDisk, Side};
use crate::Quantization;

/// The block size of most formats, used if neither the configuration nor the shapes give another.
const USUAL_BLOCK: usize = 128;

pub(super) const NO_WEIGHT: &str = "its packed weight is not in the same directory";
const STRADDLES: &str = "its packed weights straddle words";
pub(super) const NO_BITS: &str = "the bits of a packed weight are not known";
pub(super) const NO_BLOCK: &str = "the size of its blocks is not known";

/// The number of weights in a word of `word` bits.
pub(super) fn per_word(
    quantization: Option<&Quantization>,
    word: usize,
) -> Result<NonZeroUsize, &'static str> {
    let bits = quantization.and_then(Quantization::bits).and_then(NonZeroUsize::new);
    let bits = bits.ok_or(NO_BITS)?;
    if word % bits == 0 { NonZeroUsize::new(word / bits).ok_or(NO_BITS) } else { Err(STRADDLES) }
}

/// The number of inputs in a group, from the configuration.
pub(super) fn group_size(tensor: &Member<'_>) -> Option<NonZeroUsize> {
    let size = tensor.quantization?.group_size()?;
    NonZeroUsize::new(usize::try_from(size).ok()?)
}

/// A dimension with one element for each block along an axis of `len` elements.
///
/// The block is the first of the sizes that gives the number of blocks in the shape, or else the
/// power of two that divides the axis into as many. Other sizes are not guessed: 4 blocks of 300
/// elements may be of 75 or of 90. A single element for the whole axis is on every rank.
pub(super) fn blocks(
    tensor: &Member<'_>,
    dim: usize,
    len: usize,
    sizes: &[Option<NonZeroUsize>],
) -> Located {
    let Some(count) = tensor.tensor.shape.get(dim).copied() else { return Ok(None) };
    if count == len {
        return Ok(tensor.plain(dim));
    }
    if count == 1 {
        return Ok(None);
    }
    let known = sizes.iter().flatten().find(|size| len.div_ceil(size.get()) == count).copied();
    let even = || len.checked_div(count).filter(|size| size.checked_mul(count) == Some(len));
    let power = || even().filter(|size| size.is_power_of_two()).and_then(NonZeroUsize::new);
    let per = known.or_else(power).ok_or(NO_BLOCK)?;
    Ok(Some(OnDisk { dim, per, stored: NonZeroUsize::MIN, len }))
}

/// The leaf of the weight for scales of this leaf.
pub(super) fn scaled(leaf: &str) -> Option<&str> {
    leaf.strip_suffix("_scale_inv").or_else(|| leaf.strip_suffix("_scale"))
}

/// The place of an axis in scales, found from its place in their weight and both shapes.
pub(super) fn scales(
    tensor: &Member<'_>,
    weight: &Member<'_>,
    in_weight: Option<OnDisk>,
    side: Side,
) -> Located {
    let Some(OnDisk { dim, len, .. }) = in_weight else { return Ok(None) };
    let [stated, group] = stated_blocks(tensor, side);
    let sizes = [stated, group, NonZeroUsize::new(USUAL_BLOCK)];
    if tensor.rank() == weight.rank() {
        return blocks(tensor, dim, len, &sizes);
    }
    if is_spread(tensor, weight) {
        return blocks(tensor, dim.saturating_mul(2), len, &sizes);
    }
    // One for each output.
    let by_output =
        tensor.dim_from_end(0).filter(|last| last.checked_add(2) == Some(weight.rank()));
    match (by_output, side) {
        (Some(last), Side::Out) => blocks(tensor, last, len, &sizes),
        (Some(_), Side::In) => Ok(None),
        (None, _) => {
            let experts = experts_of_scales(tensor, Some(weight)).map_or(0, |_| 1);
            let is_of_all = tensor.tensor.shape.iter().skip(experts).all(|len| *len == 1);
            if is_of_all { Ok(None) } else { Err(NO_BLOCK.into()) }
        }
    }
}

/// Whether a dimension of 1 follows each of the weight's, as `ModelOpt` stores scales of blocks.
fn is_spread(tensor: &Member<'_>, weight: &Member<'_>) -> bool {
    let (is_double, shape) =
        (tensor.rank() == weight.rank().saturating_mul(2), tensor.tensor.shape);
    is_double && shape.iter().skip(1).step_by(2).all(|len| *len == 1)
}

/// The place of an axis, on `dim`, in scales whose weight is in another directory.
pub(super) fn scales_alone(tensor: &Member<'_>, dim: Option<usize>, side: Side) -> Located {
    let [stated, group] = stated_blocks(tensor, side);
    let per = stated.or(group).ok_or(NO_WEIGHT)?;
    Ok(dim.and_then(|dim| tensor.along(dim, per)))
}

/// The dimension of experts in scales, which have as many dimensions as their weight or fewer.
pub(super) fn experts_of_scales(tensor: &Member<'_>, weight: Option<&Member<'_>>) -> Option<usize> {
    let weight = weight.filter(|weight| weight.rank() > 2)?;
    (tensor.tensor.shape.first() == weight.tensor.shape.first()).then_some(0)
}

/// The block size and the group size along an axis, from the configuration.
fn stated_blocks(tensor: &Member<'_>, side: Side) -> [Option<NonZeroUsize>; 2] {
    let (block, group) = match side {
        Side::Out => (0, None),
        Side::In => (1, group_size(tensor)),
    };
    let stated = tensor.quantization.and_then(|found| found.weight_block_size().get(block));
    [stated.and_then(|size| NonZeroUsize::new(*size)), group]
}
