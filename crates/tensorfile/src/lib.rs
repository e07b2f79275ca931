//! Reads and writes one safetensors file.
//!
//! A file is an 8-byte length, a header in JSON that gives each tensor a name, a dtype, a shape and
//! a range of bytes, and then the bytes. [`TensorFile`] opens one, which reads only the header. It
//! then reads tensors by name, whole ([`read`](TensorFile::read)) or in part
//! ([`read_selection`](TensorFile::read_selection)), or maps the file ([`map`](TensorFile::map)).
//! [`Header`] is a checked header on its own; [`Tensor`] is bytes with a dtype and a shape;
//! [`Writer`] makes a file.
//!
//! Whatever the bytes, a call returns a result, or an [`Error`] that names the file and the tensor.
//! It never panics or aborts, and checks a length against the file before it allocates. Files are
//! accepted and refused as by the `safetensors` crate 0.8.0, except that a name or a metadata
//! key given twice, a tensor written as an array and a header over the limits of [`HeaderOptions`]
//! are refused. The crate starts no threads; only [`SourceFile`], [`Writer::save`] and the
//! [`ReadAt`] in use do I/O.
//!
//! ```
//! use tensorfile::{Dtype, Selection, TensorFile, Writer};
//!
//! let weight = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_le_bytes).concat();
//! let mut writer = Writer::new();
//! writer.add("weight", Dtype::F32, &[2, 3], &weight)?;
//! let bytes = writer.to_bytes()?;
//!
//! let file = TensorFile::from_bytes(&bytes)?; // or TensorFile::open(path)
//! let weight = file.read("weight")?;
//! assert_eq!((weight.dtype(), weight.shape()), (Dtype::F32, &[2, 3][..]));
//! # #[cfg(target_endian = "little")]
//! assert_eq!(weight.as_slice::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! let last_column = file.read_selection("weight", &Selection::all().with_range(1, 2..3))?;
//! assert_eq!(last_column.to_vec::<f32>()?, [3.0, 6.0]);
//!
//! let error = file.read("model.weight").unwrap_err();
//! assert_eq!(error.to_string(), r#"<memory>: tensor "model.weight": not in this file; similar: "weight""#);
//! # Ok::<(), tensorfile::Error>(())
//! ```

// The file, its header and its bytes.
mod file;
mod fill;
mod header;
mod identity;
#[doc(hidden)] // For `modeldir`, which parses hostile text too.
pub mod json_text;
mod read;
mod read_at;
mod reads;
mod rows;
mod source;

// Constants of the format, and sizes of shapes.
mod format;
mod shape;

// Tensors: elements, memory, parts.
mod buffer;
mod byte_runs;
mod dimension;
mod dtype;
mod element;
mod float8;
mod float_cast;
mod mapping;
#[doc(hidden)] // As `json_text`.
pub mod reserve;
mod selection;
mod tensor;
mod to_f32;
mod view;

// Writing.
mod write;

// Errors and their messages.
mod error;
mod file_facts;
mod limit;
mod lookalike;
mod quote;
mod selection_fault;
mod similar;
mod zeros;

/// The 16-bit floats of [`Element`], in the version that this crate uses.
pub use half;

#[doc(hidden)]
// Of the lengths that suit buffers: it is here for `modeldir`, whose threads have some.
pub use buffer::HUGE_PAGE;
pub use buffer::{Buffer, BufferMut};
pub use byte_runs::ByteRuns;
pub use dtype::{Dtype, UnknownDtype};
pub use element::Element;
pub use error::{Error, ErrorKind, Result};
pub use file::TensorFile;
pub use file_facts::{FileFact, FileKind};
pub use float_cast::{Float, FloatCast, UnknownFloat};
#[doc(hidden)] // For the metadata of an index, which `modeldir` reads.
pub use header::MetadataBuilder;
pub use header::{Header, HeaderOptions, Metadata, TensorInfo, TrailingBytes};
pub use identity::{Identity, Unchanged};
pub use limit::{Limit, LimitOn, Remedy};
pub use lookalike::{LfsPointer, Lookalike};
#[doc(hidden)] // For `modeldir`, to keep errors short.
pub use quote::shortened;
pub use quote::{PathText, Quoted};
pub use read::{Read, Row, Rows};
pub use read_at::ReadAt;
pub use selection::Selection;
pub use selection_fault::SelectionFault;
#[doc(hidden)] // For `modeldir`, whose errors suggest names in the same way.
pub use similar::similar_names;
pub use source::SourceFile;
pub use tensor::Tensor;
pub use view::TensorView;
#[doc(hidden)] // For `modeldir`, which replaces files too.
pub use write::sync_folder;
pub use write::{Writer, WriterOptions};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
