//! What a model holds, as tables and as JSON.

mod beside;
mod json;
mod report;
mod tally;
mod tensors;

pub(crate) use beside::beside_the_weights;
pub(crate) use json::model_json;
pub(crate) use report::print_report;
pub(crate) use tally::{Counted, Tally};
pub(crate) use tensors::{is_number, tensor_groups, tensor_rows};
