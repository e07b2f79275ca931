//! bitsandbytes: 4-bit weights flattened to a column of bytes before blocks are cut, or 8-bit ones
//! with a scale for each output.
//!
//! | leaf | dimensions |
//! | --- | --- |
//! | any, of a column of bytes and beside `….absmax` | cannot be cut: blocks cross rows |
//! | `absmax`, `quant_map`, `nested_absmax`, `nested_quant_map` | cannot be cut |
//! | `SCB` | out |
//! | `weight_format` | none; experts, if it holds more than one |

use tensorfile::Dtype;

use super::plain;
use crate::partition::weight_layout::{Located, Member, Side, WeightLayout};

const IS_FLATTENED: &str = "bitsandbytes stores it flattened, in blocks that cross rows";

/// The layout of bitsandbytes.
#[derive(Debug)]
pub(super) struct Bitsandbytes;

impl WeightLayout for Bitsandbytes {
    fn methods(&self) -> &'static [&'static str] {
        &["bitsandbytes"]
    }

    fn owns(&self, tensor: &Member<'_>) -> bool {
        match tensor.leaf {
            "absmax" | "quant_map" | "nested_absmax" | "nested_quant_map" | "SCB"
            | "weight_format" => true,
            leaf => {
                let is_column =
                    tensor.tensor.dtype == Dtype::U8 && matches!(tensor.tensor.shape, [_, 1]);
                is_column && tensor.has(&format!("{leaf}.absmax"))
            }
        }
    }

    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located {
        match tensor.leaf {
            "SCB" => plain::Plain.axis(tensor, side),
            "weight_format" => Ok(None),
            _ => Err(IS_FLATTENED),
        }
    }

    fn experts(&self, tensor: &Member<'_>) -> Option<usize> {
        let is_stack = match tensor.leaf {
            "weight_format" => tensor.tensor.shape.first().is_some_and(|len| *len > 1),
            _ => tensor.rank() > 2,
        };
        is_stack.then_some(0)
    }
}
