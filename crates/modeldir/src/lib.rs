//! Opens and loads Hugging Face model directories.

mod accessors;
mod error;
mod generation;
mod index_text;
#[expect(dead_code, unused_imports, reason = "the rooms that use the rest are not there yet")]
mod json;
mod natural;
mod options;
mod shard_path;
mod source_stand_in;
#[cfg_attr(not(test), expect(dead_code, reason = "opening directories is not there yet"))]
mod weight_map;

pub use error::{Error, Fault, MissingCause, Result};
pub use generation::GenerationConfig;
pub use options::{Family, IndexPolicy, MissingShards, OpenOptions, Unindexed};
pub use weight_map::TotalSize;
