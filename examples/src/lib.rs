//! What the examples share: how they print, and which model they take when none is given.

mod beside;
mod digests;
mod json;
mod mending;
mod model;
mod output;
mod parts;
mod progress;
mod ranges;
mod report;
mod rules;
mod run;
mod table;
mod tally;
mod tensors;
mod text;

pub use beside::beside_the_weights;
pub use digests::{TensorDigest, digests};
pub use json::model_json;
pub use mending::{broken_beside, wanting};
pub use model::model_path;
pub use output::Output;
pub use parts::{PART_BYTES, parts};
pub use progress::progress_bar;
pub use ranges::Ranges;
pub use report::print_report;
pub use rules::RuleArgs;
pub use run::{Result, run, show_error};
pub use table::{Align, Table};
pub use tally::Tally;
pub use tensors::{tensor_groups, tensor_rows};
pub use text::{bytes, count, counted, first_values, rate, shown, time};
