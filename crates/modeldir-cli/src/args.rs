//! Options that several sub-commands share.

mod float;
mod job;
mod model;
mod names;
mod ranges;
mod rules;
mod size;

pub(crate) use float::parse_float;
pub(crate) use job::{JobArgs, of_rank, place};
pub(crate) use model::ModelArgs;
pub(crate) use names::NameArgs;
pub(crate) use ranges::Ranges;
pub(crate) use rules::RuleArgs;
pub(crate) use size::Size;
