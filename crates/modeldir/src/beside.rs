//! Files beside the weights: which there are, and what they say.
//!
//! [`ModelDir`](crate::ModelDir) finds and reads them; the types here are what its methods return.
//! [`ModelConfig`](crate::ModelConfig) and [`Quantization`](crate::Quantization) are at the root.

pub use crate::adapter::AdapterConfig;
pub use crate::chat_template::ChatTemplate;
pub use crate::file_role::FileRole;
pub use crate::generation::GenerationConfig;
pub use crate::tokenizer::TokenizerFiles;
