//! Options that several sub-commands share.

mod job;
mod model;
mod names;
mod rules;

pub(crate) use job::JobArgs;
pub(crate) use model::ModelArgs;
pub(crate) use names::NameArgs;
pub(crate) use rules::RuleArgs;
