//! How the benches measure: contestants take turns in one process, medians are compared.

mod data;
mod race;
mod touch;

pub use data::{deepseek, llama};
pub use race::{Contestant, median, race};
pub use touch::{pretouch, warm};
