//! Scales of activations and caches, beside weights of any layout.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | `input_scale`, `output_scale`, `q_scale`, `k_scale`, `v_scale` | none |
//! | `input_zero_point`, `output_zero_point`, `input_scale_ub` | none |

use crate::partition::weight_layout::{Located, Member, Side, WeightLayout};

/// Scales that are on every rank.
#[derive(Debug)]
pub(super) struct Activations;

impl WeightLayout for Activations {
    fn methods(&self) -> &'static [&'static str] {
        &[]
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        matches!(
            tensor.leaf,
            "input_scale"
                | "input_scale_ub"
                | "input_zero_point"
                | "output_scale"
                | "output_zero_point"
                | "q_scale"
                | "k_scale"
                | "v_scale"
        )
    }

    fn axis(&self, _tensor: &Member<'_>, _side: Side) -> Located {
        Ok(None)
    }

    fn experts(&self, _tensor: &Member<'_>) -> Option<usize> {
        None
    }
}
