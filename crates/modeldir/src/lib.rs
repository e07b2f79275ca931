//! Opens and loads Hugging Face model directories.

mod accessors;
mod chat_template;
mod config;
mod error;
mod file_role;
mod generation;
pub mod hub;
mod index_text;
mod json;
mod natural;
mod options;
mod quantization;
#[cfg_attr(not(test), expect(dead_code, reason = "opening directories is not there yet"))]
#[expect(unused_imports, reason = "opening directories is not there yet")]
mod resolve;
mod shard_path;
mod tokenizer;
mod versions;
#[cfg_attr(not(test), expect(dead_code, reason = "opening directories is not there yet"))]
mod weight_map;

pub use chat_template::ChatTemplate;
pub use config::ModelConfig;
pub use error::{Error, Fault, MissingCause, Result};
pub use file_role::FileRole;
pub use generation::GenerationConfig;
pub use options::{Family, IndexPolicy, MissingShards, OpenOptions, Unindexed};
pub use quantization::Quantization;
pub use resolve::{IgnoreReason, IgnoredFile};
pub use tokenizer::TokenizerFiles;
