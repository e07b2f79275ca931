//! The ranks of a job: their plans, and their shares of the model.

mod holdings;
mod plans;

use holdings::Holdings;
pub(crate) use plans::{JobPlan, RankPlan, oddity_lines, rank_table, ranks_json};
