//! The ranks of a job: their plans, their shares of the model, and what they loaded.

mod holdings;
mod loaded;
mod plans;

use holdings::Holdings;
pub(crate) use loaded::RankLoad;
pub(crate) use plans::{JobPlan, RankPlan, oddity_lines, rank_table, ranks_json};
