//! Files beside the weights: which there are, and what they say.
//!
//! [`ModelDir`](crate::ModelDir) finds and reads them; the types here are what its methods return.
//! [`ModelConfig`](crate::ModelConfig) and [`Quantization`](crate::Quantization) are at the root.

pub(crate) mod accessors;
pub(crate) mod adapter;
pub(crate) mod chat_template;
pub(crate) mod config;
pub(crate) mod file_role;
pub(crate) mod generation;
pub(crate) mod quantization;
pub(crate) mod tokenizer;
pub(crate) mod versions;

pub use adapter::AdapterConfig;
pub use chat_template::ChatTemplate;
pub use file_role::FileRole;
pub use generation::GenerationConfig;
pub use tokenizer::TokenizerFiles;
