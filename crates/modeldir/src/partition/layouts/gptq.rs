//! GPTQ: words of inputs, of 32 or 64 bits, and a scale and a zero point for each group of inputs.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | `qweight` | in, a word for as many as fit; out |
//! | `qzeros` | groups of inputs; out, a word for as many as fit |
//! | `scales` | groups of inputs; out |
//! | `g_idx` | in: the group of each |
//!
//! If columns were reordered (`desc_act`), zero points and scales are whole on every rank.

use std::num::NonZeroUsize;

use tensorfile::Dtype;

use crate::Quantization;
use crate::partition::companion::{NO_WEIGHT, blocks, group_size, per_word};
use crate::partition::weight_layout::{Located, Member, Side, WeightLayout};

const NO_WORDS: &str = "its packed weight is not in words of 32 or 64 bits";

/// The layout of GPTQ.
#[derive(Debug)]
pub(super) struct Gptq;

impl WeightLayout for Gptq {
    fn methods(&self) -> &'static [&'static str] {
        &["gptq", "auto-round", "intel/auto-round"]
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        has_leaf(tensor)
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        let weight = packed_weight(tensor).ok_or(NO_WEIGHT)?;
        word(tensor)?;
        let packed = || in_word(tensor);
        match side {
            Side::Out if tensor.leaf == "qzeros" => outputs(tensor, weight, packed()?),
            Side::Out => outputs(tensor, weight, NonZeroUsize::MIN),
            Side::In => inputs(tensor, weight, packed()?),
        }
    }
}

/// Whether a leaf is one that GPTQ and AWQ share.
pub(super) fn has_leaf(tensor: &Member<'_>) -> bool {
    match tensor.leaf {
        "qweight" | "qzeros" | "g_idx" => true,
        "scales" => tensor.has("qweight"),
        _ => false,
    }
}

/// The number of weights in a word: as zero points and scales show it, for layers may differ, else
/// from the configuration.
pub(super) fn in_word(tensor: &Member<'_>) -> Result<NonZeroUsize, &'static str> {
    let last = |leaf| tensor.shape_of(leaf).and_then(<[usize]>::last).copied();
    let word = word(tensor)?;
    if let (Some(zeros), Some(scales)) = (last("qzeros"), last("scales")) {
        let shown = scales.checked_div(zeros).and_then(NonZeroUsize::new);
        let is_whole =
            |per: &NonZeroUsize| per.get().checked_mul(zeros) == Some(scales) && word % *per == 0;
        if let Some(per) = shown.filter(is_whole) {
            return Ok(per);
        }
    }
    per_word(tensor.quantization, word)
}

/// The number of weights in a word, from the configuration alone.
pub(super) fn per_word_by_config(tensor: &Member<'_>) -> Result<NonZeroUsize, &'static str> {
    per_word(tensor.quantization, word(tensor)?)
}

/// Bits of a word of the packed weight.
pub(super) fn word(tensor: &Member<'_>) -> Result<usize, &'static str> {
    match tensor.sibling("qweight").ok_or(NO_WEIGHT)?.tensor.dtype {
        Dtype::I32 | Dtype::U32 => Ok(32),
        Dtype::I64 | Dtype::U64 => Ok(64),
        _ => Err(NO_WORDS),
    }
}

/// The shape of the packed weight of a module.
pub(super) fn packed_weight<'a>(tensor: &Member<'a>) -> Option<&'a [usize]> {
    tensor.shape_of("qweight").filter(|weight| weight.len() > 1)
}

/// Outputs lie along the last dimension.
pub(super) fn outputs(tensor: &Member<'_>, weight: &[usize], per: NonZeroUsize) -> Located {
    match tensor.leaf {
        "g_idx" => Ok(None),
        _ if tensor.rank() != weight.len() => Err(NO_WEIGHT.into()),
        _ => Ok(tensor.dim_from_end(0).and_then(|dim| tensor.along(dim, per))),
    }
}

/// Inputs lie along the last dimension but one, `per` in an element of the weight.
pub(super) fn inputs(tensor: &Member<'_>, weight: &[usize], per: NonZeroUsize) -> Located {
    if tensor.leaf == "g_idx" {
        return Ok(tensor.dim_from_end(0).and_then(|dim| tensor.plain(dim)));
    }
    let dim = tensor.dim_from_end(1).filter(|_| tensor.rank() == weight.len());
    let dim = dim.ok_or(NO_WEIGHT)?;
    if tensor.leaf == "qweight" {
        return Ok(tensor.along(dim, per));
    }
    // The shapes do not show which groups a run of reordered columns needs.
    if tensor.quantization.and_then(Quantization::desc_act) == Some(true) {
        return Ok(None);
    }
    let words = weight.get(dim).copied().unwrap_or(0);
    blocks(tensor, dim, words.saturating_mul(per.get()), &[group_size(tensor)])
}
