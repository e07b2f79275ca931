//! The files beside the weights, such as configuration and tokenizer, and their contents.
//!
//! [`ModelDir`](crate::ModelDir) finds and reads them; its methods return the types of this module.
//! [`ModelConfig`](crate::ModelConfig) and [`Quantization`](crate::Quantization) are at the root of
//! the crate.

pub(crate) mod accessors;
pub(crate) mod adapter;
pub(crate) mod chat_template;
pub(crate) mod config;
pub(crate) mod file_role;
pub(crate) mod generation;
pub(crate) mod json_file;
pub(crate) mod quantization;
pub(crate) mod tokenizer;
pub(crate) mod versions;

pub use adapter::AdapterConfig;
pub use chat_template::ChatTemplate;
pub use file_role::FileRole;
pub use generation::GenerationConfig;
pub use tokenizer::TokenizerFiles;
