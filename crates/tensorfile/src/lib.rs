//! Reads and writes one safetensors file.

mod buffer;
mod dtype;
mod error;
#[cfg_attr(not(test), expect(dead_code, reason = "TensorFile::map, its caller, is still to come"))]
mod mapping;
mod quote;

pub use buffer::{Buffer, BufferMut};
pub use dtype::Dtype;
pub use error::{Error, FileKind, Lookalike, Needed, Result};
pub use quote::{PathText, Quoted};
