//! AWQ: 32-bit words of outputs, and a scale and a zero point for each group of inputs.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | `qweight` | in; out, a word for as many as fit |
//! | `qzeros` | groups of inputs; out, a word for as many as fit |
//! | `scales` | groups of inputs; out |
//!
//! The leaves are those of GPTQ. Scales are not packed, so their shape shows which axis of the
//! weight is; if they are in another directory, the configuration decides.

use std::num::NonZeroUsize;

use super::gptq;
use crate::partition::companion::NO_WEIGHT;
use crate::partition::weight_layout::{Located, Member, Side, WeightLayout};

/// The layout of AWQ.
#[derive(Debug)]
pub(super) struct Awq;

impl WeightLayout for Awq {
    fn methods(&self) -> &'static [&'static str] {
        &["awq"]
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        if !gptq::has_leaf(tensor) {
            return false;
        }
        let Some(weight) = gptq::packed_weight(tensor) else { return false };
        match tensor.shape_of("scales").and_then(<[usize]>::last) {
            Some(outputs) => weight.last() != Some(outputs),
            None => tensor.quantization.is_some_and(|found| self.is_named_by(found)),
        }
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        let weight = gptq::packed_weight(tensor).ok_or(NO_WEIGHT)?;
        gptq::word(tensor)?;
        match (side, tensor.leaf) {
            (Side::Out, "qweight" | "qzeros") => {
                gptq::outputs(tensor, weight, gptq::in_word(tensor)?)
            }
            (Side::Out, _) => gptq::outputs(tensor, weight, NonZeroUsize::MIN),
            (Side::In, _) => gptq::inputs(tensor, weight, NonZeroUsize::MIN),
        }
    }
}
