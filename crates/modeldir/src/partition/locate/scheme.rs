//! What a quantization says of packed words and blocks.

use std::num::NonZeroUsize;

use super::{Located, ONE, OnDisk};
use crate::Quantization;
use crate::partition::siblings::TensorShape;

const STRADDLES: &str = "its packed weights straddle words";
const NO_BITS: &str = "the bits of a packed weight are not known";
const NO_BLOCK: &str = "the size of its blocks is not known";

/// What is known of the quantization.
#[derive(Clone, Debug, Default)]
pub(in crate::partition) struct Scheme {
    bits: Option<usize>,
    pub(super) group_size: Option<NonZeroUsize>,
    /// Outputs and inputs of a block.
    pub(super) block: [Option<NonZeroUsize>; 2],
    pub(super) is_awq: bool,
    pub(super) desc_act: bool,
}

impl Scheme {
    pub(in crate::partition) fn new(quantization: Option<&Quantization>) -> Self {
        let Some(found) = quantization else { return Self::default() };
        let block = |i: usize| found.weight_block_size().get(i).and_then(|n| NonZeroUsize::new(*n));
        let group_size = found.group_size().and_then(|size| usize::try_from(size).ok());
        Self {
            bits: found.bits(),
            group_size: group_size.and_then(NonZeroUsize::new),
            block: [block(0), block(1)],
            is_awq: found.method() == Some("awq"),
            desc_act: found.desc_act() == Some(true),
        }
    }

    /// How many weights lie in a word of so many bits.
    pub(super) fn pack(&self, word: usize) -> Result<NonZeroUsize, &'static str> {
        let bits = self.bits.and_then(NonZeroUsize::new).ok_or(NO_BITS)?;
        if word % bits == 0 {
            NonZeroUsize::new(word / bits).ok_or(NO_BITS)
        } else {
            Err(STRADDLES)
        }
    }
}

/// A dimension with one element for each block along an axis of `len` elements.
///
/// The first of the sizes counts that makes as many blocks as there are. One element for all is
/// held by every rank.
pub(super) fn blocks(
    tensor: &TensorShape<'_>,
    dim: usize,
    len: usize,
    sizes: &[Option<NonZeroUsize>],
) -> Located {
    let Some(count) = tensor.shape.get(dim).copied() else { return Ok(None) };
    if count == len {
        return Ok(Some(OnDisk { dim, per: ONE, len }));
    }
    if count == 1 {
        return Ok(None);
    }
    let known = sizes.iter().flatten().find(|size| len.div_ceil(size.get()) == count).copied();
    let even = || if count > 0 && len % count == 0 { NonZeroUsize::new(len / count) } else { None };
    let per = known.or_else(even).ok_or(NO_BLOCK)?;
    Ok(Some(OnDisk { dim, per, len }))
}
