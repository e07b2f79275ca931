//! The ranks of a job: what each would hold and read.

mod holdings;
mod plans;
mod shown;
mod sizes;
mod without_rule;

pub(crate) use plans::{JobPlan, RankPlan};
pub(crate) use without_rule::WithoutRule;
