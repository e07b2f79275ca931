//! AWQ for products with one vector (`gemv`): outputs before inputs, 32-bit words of inputs, and
//! words of the zero points of consecutive groups.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | `qweight` | out; in, a word for as many as fit |
//! | `qzeros` | out; groups of inputs, a word for as many as fit |
//! | `scales` | out; groups of inputs |
//!
//! Zero points and scales have more groups than the weight, up to a multiple of the word. Ranks do
//! not get these: a part ends where the inputs end.

use std::num::NonZeroUsize;

use super::gptq;
use crate::Quantization;
use crate::partition::companion::{NO_BLOCK, NO_WEIGHT, group_size};
use crate::partition::weight_layout::{Located, Member, OnDisk, Side, WeightLayout};

/// The layout of AWQ `gemv`.
#[derive(Debug)]
pub(super) struct AwqGemv;

impl WeightLayout for AwqGemv {
    fn methods(&self) -> &'static [&'static str] {
        &["awq"]
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        if tensor.leaf == "g_idx" || !gptq::has_leaf(tensor) {
            return false;
        }
        // Scales are not packed: the axis that they share with the weight is that of the outputs.
        match (tensor.shape_of("qweight"), tensor.shape_of("scales")) {
            (Some([outputs, words]), Some([scales, groups])) => {
                outputs == scales && (words != groups || is_named(tensor.quantization))
            }
            _ => false,
        }
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        gptq::word(tensor)?;
        if side == Side::Out {
            return Ok(tensor.plain(0));
        }
        let per = gptq::per_word_by_config(tensor)?;
        let Some([_, words]) = tensor.shape_of("qweight") else { return Err(NO_WEIGHT.into()) };
        let len = words.saturating_mul(per.get());
        if tensor.leaf == "qweight" {
            return Ok(tensor.along(1, per));
        }
        let group = group_size(tensor).ok_or(NO_BLOCK)?;
        let each = if tensor.leaf == "qzeros" { group.saturating_mul(per) } else { group };
        let stored = tensor.tensor.shape.get(1).copied().unwrap_or(0);
        if len.div_ceil(each.get()) > stored {
            return Err(NO_BLOCK.into());
        }
        Ok(Some(OnDisk { dim: 1, per: each, stored: NonZeroUsize::MIN, len }))
    }
}

/// Whether the configuration names this form of AWQ.
fn is_named(quantization: Option<&Quantization>) -> bool {
    let version = quantization.and_then(|found| found.raw().get("version")?.as_str());
    version.is_some_and(|version| version.eq_ignore_ascii_case("gemv"))
}
