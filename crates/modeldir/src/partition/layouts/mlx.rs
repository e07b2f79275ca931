//! MLX: 32-bit words of inputs, and a scale and a bias for each group of inputs.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | `weight`, of words and beside `scales` | out; in, a whole number of words for each group |
//! | `scales`, `biases` of it | out; groups of inputs |
//!
//! Experts lie before both. A group fills whole words whatever its bits: 64 weights of 6 bits fill
//! 12. Weights of 3, 5 or 6 bits straddle words within a group, so cuts are at groups; those of 2, 4
//! or 8 bits could be cut at words.
//!
//! The configuration lists modules with other bits or groups than the rest by name.

use std::num::NonZeroUsize;

use serde_json::Value;
use tensorfile::Dtype;

use super::plain;
use crate::partition::companion::{self, NO_BITS, NO_WEIGHT, group_size};
use crate::partition::weight_layout::{Located, Member, OnDisk, Side, WeightLayout};

/// Bits of a word.
const WORD: usize = 32;

const OTHER_SIZES: &str = "its words and scales are not those of groups of the stated size";

/// The layout of MLX.
#[derive(Debug)]
pub(super) struct Mlx;

impl WeightLayout for Mlx {
    fn methods(&self) -> &'static [&'static str] {
        &["mlx"]
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        match tensor.leaf {
            "scales" | "biases" => {
                tensor.sibling("weight").is_none_or(|weight| is_of_words(&weight))
            }
            "weight" => is_of_words(tensor) && tensor.has("scales"),
            _ => false,
        }
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        let Some(weight) = tensor.sibling("weight") else {
            return companion::scales_alone(tensor, plain::dim(tensor, side), side);
        };
        if tensor.rank() != weight.rank() {
            return Err(NO_WEIGHT.into());
        }
        // Rules for `Conv1D` do not change this: MLX has outputs before inputs.
        match side {
            Side::Out => Ok(tensor.dim_from_end(1).and_then(|dim| tensor.plain(dim))),
            Side::In => inputs(tensor, &weight),
        }
    }
}

fn is_of_words(weight: &Member<'_>) -> bool {
    weight.tensor.dtype == Dtype::U32
}

/// The inputs of a weight, of its scales or of its biases.
fn inputs(tensor: &Member<'_>, weight: &Member<'_>) -> Located {
    let last = |shape: &[usize]| shape.last().copied().unwrap_or(0);
    let scales = weight.shape_of("scales").ok_or(NO_WEIGHT)?;
    let (words, groups) = (last(weight.tensor.shape), last(scales));
    let group = group_of(weight, words, groups)?;
    let Some(dim) = tensor.dim_from_end(0) else { return Ok(None) };
    let len = groups.saturating_mul(group.get());
    if tensor.leaf != "weight" {
        return Ok(Some(OnDisk { dim, per: group, stored: NonZeroUsize::MIN, len }));
    }
    if let Some(per) = quotient(len, words) {
        return Ok(Some(OnDisk { dim, per, stored: NonZeroUsize::MIN, len }));
    }
    let stored = quotient(words, groups).ok_or(OTHER_SIZES)?;
    Ok(Some(OnDisk { dim, per: group, stored, len }))
}

/// The quotient of two numbers, if it is whole.
fn quotient(number: usize, of: usize) -> Option<NonZeroUsize> {
    let quotient = NonZeroUsize::new(number.checked_div(of)?)?;
    (quotient.get().checked_mul(of) == Some(number)).then_some(quotient)
}

/// The number of inputs in a group, if the shapes agree with it.
fn group_of(
    weight: &Member<'_>,
    words: usize,
    groups: usize,
) -> Result<NonZeroUsize, &'static str> {
    let [bits, stated] = stated(weight);
    let filled = words.saturating_mul(WORD);
    let Some(group) = stated.or_else(|| group_size(weight)) else {
        let inputs = filled.checked_div(bits.ok_or(NO_BITS)?.get());
        let each = inputs.and_then(|inputs| inputs.checked_div(groups));
        return each.and_then(NonZeroUsize::new).ok_or(OTHER_SIZES);
    };
    let inputs = groups.saturating_mul(group.get());
    let shown = quotient(filled, inputs).ok_or(OTHER_SIZES)?;
    let is_stated = bits.map_or((2..=8).contains(&shown.get()), |bits| bits == shown);
    if is_stated { Ok(group) } else { Err(OTHER_SIZES) }
}

/// Bits and inputs of a group of this module, as the configuration states them.
fn stated(weight: &Member<'_>) -> [Option<NonZeroUsize>; 2] {
    let Some(quantization) = weight.quantization else { return [None, None] };
    let module = weight.tensor.name.strip_suffix(".weight").unwrap_or_default();
    let own = quantization.raw().get(module).and_then(Value::as_object);
    let number = |key: &str| {
        let number = own?.get(key)?.as_u64()?;
        NonZeroUsize::new(usize::try_from(number).ok()?)
    };
    let bits = || quantization.bits().and_then(NonZeroUsize::new);
    [number("bits").or_else(bits), number("group_size")]
}
