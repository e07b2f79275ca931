//! How the benches measure: contestants take turns in one process, medians are compared.

mod cache;
mod data;
mod race;
mod touch;
mod usage;

pub use cache::{drop_cache, warm_cache, warm_half};
pub use data::{deepseek, llama};
pub use race::{Contestant, median, race};
pub use touch::{pretouch, warm};
pub use usage::{Usage, anonymous_bytes, free_bytes};
