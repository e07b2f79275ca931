//! The ranks of a job: what each would hold and read.

mod holdings;
mod plans;
mod shown;
mod sizes;

pub(crate) use plans::{JobPlan, RankPlan};
