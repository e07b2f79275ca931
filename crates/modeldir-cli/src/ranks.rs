//! What the ranks of a job hold, plan and have loaded.

mod holdings;
mod loaded;
mod plans;

use holdings::Holdings;
pub(crate) use loaded::RankLoad;
pub(crate) use plans::{JobPlan, print_oddities, rank_table, ranks_json};
