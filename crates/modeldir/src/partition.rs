//! The part of a model for each rank: rules, and how they select parts of tensors; pure.
//!
//! A [`Partition`] is a list of [`Rule`]s and their options. A [`Topology`] is the place of one
//! rank in a job. [`ModelDir::plan_for`](crate::ModelDir::plan_for) applies both to a model and
//! returns the plan of that rank; [`Partition::cut`] applies them to names, dtypes and shapes
//! alone. Rules come from [`ModelDir::partition`](crate::ModelDir::partition) (built in), from a
//! JSON file ([`Partition::from_file`]), or from code.

// Each file is covered; the few with bounded sums say what bounds them.
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod balance;
mod companion;
mod cut;
mod cutter;
mod error;
mod expect;
mod for_config;
mod from_hf;
mod interval;
mod job;
mod kinds;
mod layout;
mod layouts;
mod line;
mod locate;
mod matcher;
mod misfit;
mod pattern;
mod placement;
mod portion;
mod quantized;
mod report;
mod rule;
mod rules;
mod siblings;
mod sizes;
mod stage;
mod tables;
mod target;
mod topology;
mod tp;
mod tp_forms;
mod weight_layout;
mod words;
mod wrappers;

#[cfg(test)]
mod tests;

pub(crate) use quantized::is_companion;

pub use cut::Cut;
pub use error::PartitionError;
pub use expect::Expected;
pub use job::Job;
pub use layout::{Along, Axes, Layout};
pub use misfit::Misfit;
pub use pattern::Pattern;
pub use placement::{ExpertSplit, LayerSplit};
pub use report::PartitionReport;
pub use rule::{Ep, Pp, Rule, Unused};
pub use rules::{ExtraLayers, Partition, Unmatched};
pub use siblings::TensorShape;
pub use topology::Topology;
pub use tp::{Axis, Heads, Misaligned, Part, Split, Tp, Uneven};
