//! Reads and writes one safetensors file.

mod dtype;
mod error;
mod quote;

pub use dtype::Dtype;
pub use error::{Error, FileKind, Lookalike, Needed, Result};
pub use quote::{PathText, Quoted};
