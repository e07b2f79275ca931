//! How the benches measure: contestants take turns in one process, medians are compared.

mod cache;
mod data;
mod floor;
mod race;
mod rank;
mod touch;
mod usage;

pub use cache::{drop_cache, warm, warm_cache, warm_half};
pub use data::{deepseek, llama, small_tensors};
pub use floor::{copy, read_into_huge_pages};
pub use race::{Contestant, is_wanted, median, race};
pub use rank::{cut, rank_plan};
pub use touch::pretouch;
pub use usage::{Usage, anonymous_bytes, free_bytes};
