//! Opens and loads Hugging Face model directories.

mod accessors;
mod config;
mod error;
mod generation;
mod index_text;
mod json;
mod natural;
mod options;
mod quantization;
mod shard_path;
mod versions;
#[cfg_attr(not(test), expect(dead_code, reason = "opening directories is not there yet"))]
mod weight_map;

pub use config::ModelConfig;
pub use error::{Error, Fault, MissingCause, Result};
pub use generation::GenerationConfig;
pub use options::{Family, IndexPolicy, MissingShards, OpenOptions, Unindexed};
pub use quantization::Quantization;
pub use weight_map::TotalSize;
