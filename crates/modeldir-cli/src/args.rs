//! Options that several sub-commands share, and the syntax of their values.

mod job;
mod model;
mod names;
mod number;
mod rules;

pub(crate) use job::JobArgs;
pub(crate) use model::ModelArgs;
pub(crate) use names::NameArgs;
pub(crate) use number::parse_number;
pub(crate) use rules::RuleArgs;
