//! Reads and writes one safetensors file.

mod buffer;
mod byte_runs;
mod dtype;
mod element;
mod error;
mod float8;
mod header;
mod lookalike;
#[cfg_attr(not(test), expect(dead_code, reason = "TensorFile::map, its caller, is still to come"))]
mod mapping;
mod quote;
mod read_at;
mod selection;
mod source;
mod tensor;
mod to_f32;
mod write;

pub use buffer::{Buffer, BufferMut};
pub use byte_runs::ByteRuns;
pub use dtype::Dtype;
pub use element::Element;
pub use error::{Error, FileKind, Lookalike, Needed, Result};
pub use header::{Header, HeaderOptions, TensorInfo, TrailingBytes};
pub use lookalike::LfsPointer;
pub use quote::{PathText, Quoted};
pub use read_at::ReadAt;
pub use selection::Selection;
pub use source::{Identity, SourceFile};
pub use tensor::{Tensor, TensorView};
pub use write::{Writer, WriterOptions};
