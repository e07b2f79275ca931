//! `Expected`: what a rule expects of the tensors that it cuts, and whether a tensor is that.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use serde::{Deserialize, Serialize};

use super::locate;
use super::misfit::Misfit;
use super::tp::Axis;
use super::weight_layout::{Member, OnDisk, Side};

/// What a rule expects of the tensors that it cuts; it refuses all others.
///
/// A known layout: the leaf and dtype of the tensor are those of a layout that this library knows,
/// and the configuration names no quantization method that it does not know. And the lengths given
/// here, which the configuration of the model states.
///
/// Built-in rules expect, so that no tensor is cut as what it is not. In JSON, `{}` expects a known
/// layout of any lengths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Outputs of the layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<usize>,
    /// Inputs of the layer.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub inputs: Option<usize>,
    /// Experts of a tensor that holds all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<usize>,
    /// Heads along the axis that is cut. Those of all projections of a module are equally wide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<usize>,
    /// A field that the rule needs of the configuration, which states none: no tensor is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Box<str>>,
}

impl Expected {
    /// How the lengths of a weight contradict those expected.
    pub(super) fn contradiction(&self, tensor: &Member<'_>) -> Option<Misfit> {
        if let Some(field) = &self.missing {
            return Some(Misfit::NoNumber { field: field.clone() });
        }
        if !is_weight(tensor.leaf) {
            return None;
        }
        let sides = [(Axis::Out, Side::Out, self.out), (Axis::In, Side::In, self.inputs)];
        sides.into_iter().find_map(|(axis, side, stated)| {
            let stated = stated?;
            let Ok(Some(OnDisk { len, per, .. })) = locate::axis(tensor, side) else { return None };
            // The last word or block may be partly filled.
            let is_same = len.checked_sub(stated).is_some_and(|more| more < per.get());
            (!is_same).then_some(Misfit::Length { axis, len, stated })
        })
    }
}

/// Whether a leaf is that of a weight or bias, whose lengths are those of the layer.
pub(super) fn is_weight(leaf: &str) -> bool {
    matches!(leaf, "weight" | "bias" | "qweight" | "weight_packed")
        || leaf.ends_with("_proj")
        || leaf.ends_with("_proj_blocks")
}
