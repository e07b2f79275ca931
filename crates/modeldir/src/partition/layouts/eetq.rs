//! EETQ: 8-bit integers, inputs before outputs, with a scale for each output.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | `weight`, of 8-bit integers and beside `weight_scales` | in; out |
//! | `weight_scales` | out |

use tensorfile::Dtype;

use crate::partition::weight_layout::{Located, Member, Side, WeightLayout};

const OTHER_SHAPE: &str = "it is not a matrix of inputs and outputs with a scale for each output";

/// The layout of EETQ.
#[derive(Debug)]
pub(super) struct Eetq;

impl WeightLayout for Eetq {
    fn methods(&self) -> &'static [&'static str] {
        &["eetq"]
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        match tensor.leaf {
            "weight" => tensor.tensor.dtype == Dtype::I8 && tensor.has("weight_scales"),
            leaf => leaf == "weight_scales" && tensor.rank() == 1,
        }
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        if tensor.leaf != "weight" {
            let dim = tensor.dim_from_end(0).filter(|_| side == Side::Out);
            return Ok(dim.and_then(|dim| tensor.plain(dim)));
        }
        match (tensor.tensor.shape, tensor.shape_of("weight_scales")) {
            ([_, outputs], Some([scales])) if outputs == scales => {
                Ok(tensor.plain(if side == Side::Out { 1 } else { 0 }))
            }
            _ => Err(OTHER_SHAPE.into()),
        }
    }

    fn experts(&self, _tensor: &Member<'_>) -> Option<usize> {
        None
    }
}
