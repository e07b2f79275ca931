//! The kinds of errors: what was wrong, what was expected and what was found.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::shown::{Shape, Similar, Zeros};
use crate::dtype::{Dtype, UnknownDtype};
use crate::file_facts::{Change, FileFact, FileKind};
use crate::limit::Limit;
use crate::lookalike::Lookalike;
use crate::quote::{PathText, Quoted};
use crate::selection_fault::SelectionFault;

/// What was wrong, without path and tensor, which are in the [`Error`](crate::Error).
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    // -- The file as the operating system sees it.
    /// The operating system refused an operation.
    #[error("cannot {action}")]
    Io {
        /// The operation, as it follows "cannot".
        action: &'static str,
        /// The operating system's error.
        source: Arc<io::Error>,
    },
    /// The operating system cannot map the file: its file system does not support it, or the
    /// process has no addresses or mappings left. Reading the file works all the same.
    #[error("cannot map its {byte_len} bytes into memory (they can be read)")]
    NotMapped {
        /// The length of the file.
        byte_len: u64,
        /// The operating system's error.
        source: Arc<io::Error>,
    },
    /// Nothing has this path.
    #[error("no such file")]
    NotFound,
    /// The path is a symbolic link to something that is not there.
    #[error("dangling link: its target {} does not exist", PathText(target))]
    DanglingLink {
        /// The target of the link.
        target: PathBuf,
    },
    /// The path is a folder, a FIFO, a device or a socket.
    #[error("is a {kind}, not a regular file")]
    NotARegularFile {
        /// What it is instead.
        kind: FileKind,
    },
    /// The file was changed, shortened or replaced after it was opened. If it is shorter, the error
    /// names the first tensor that is cut off.
    #[error("changed since it was opened: {}", Change(*what, *before, *after))]
    Changed {
        /// What differs.
        what: FileFact,
        /// The value at opening; times are in nanoseconds since 1970.
        before: i128,
        /// The value now.
        after: i128,
    },
    /// The operating system could not read bytes that are there.
    #[error("cannot read bytes {range:?}")]
    Read {
        /// The range of the read in the file.
        range: Range<u64>,
        /// The operating system's error.
        source: Arc<io::Error>,
    },
    /// A read went past the end of the file, which has become shorter since it was opened.
    #[error("bytes {range:?} were to be read, the file now ends at byte {byte_len}")]
    ReadPastEnd {
        /// The range of the read in the file.
        range: Range<u64>,
        /// The length of the file now.
        byte_len: u64,
    },
    /// There is not enough memory.
    #[error("no memory for {byte_len} bytes")]
    OutOfMemory {
        /// The length of the allocation in bytes.
        byte_len: usize,
    },

    // -- A file that is not a safetensors file at all.
    /// The file has no bytes.
    #[error("empty file (0 bytes)")]
    Empty,
    /// The file is shorter than the 8 bytes that give the header length.
    #[error("{byte_len} bytes, too short for the 8 bytes of a header length")]
    TooShort {
        /// The length of the file.
        byte_len: u64,
    },
    /// The file is a Git LFS pointer, the placeholder of a file not yet downloaded.
    #[error(
        "is a Git LFS pointer, not the file itself: {byte_len} bytes with sha256 {oid} were never fetched (git lfs pull)"
    )]
    LfsPointer {
        /// SHA-256 of the actual file, in hexadecimal.
        oid: Box<str>,
        /// The length of the actual file in bytes.
        byte_len: u64,
    },
    /// The file begins with zeros in place of a header: it was allocated and never written, or lost
    /// its content.
    #[error("{}: they were never written, or were lost", Zeros(*zero_bytes, *byte_len))]
    LeadingZeros {
        /// The number of zero bytes at the start; the count ends at 1 MiB.
        zero_bytes: u64,
        /// The length of the file.
        byte_len: u64,
    },
    /// The file has another format.
    #[error("not a safetensors file: it looks like {looks_like}")]
    NotSafetensors {
        /// Its kind, by its first bytes.
        looks_like: Lookalike,
    },

    // -- The header as text.
    /// A limit was exceeded.
    #[error("{0}")]
    Limit(Limit),
    /// The header length reaches past the end of the file.
    #[error("header of {header_len} bytes declared, the file has {byte_len} bytes")]
    HeaderPastEnd {
        /// The declared length of the header.
        header_len: u64,
        /// The length of the file.
        byte_len: u64,
    },
    /// The header is not UTF-8.
    #[error("header is not UTF-8 at byte {valid_up_to}")]
    HeaderNotUtf8 {
        /// The number of valid bytes before the first invalid one.
        valid_up_to: usize,
    },
    /// The header is not JSON of the format.
    #[error("header at line {line} column {column}: {message}")]
    HeaderJson {
        /// The line, counted from 1.
        line: usize,
        /// The byte of the line, counted from 1; 0 before the first.
        column: usize,
        /// The parser's message.
        message: Box<str>,
    },
    /// A metadata value is not a string.
    #[error("metadata {}: expected a string, found {found}", Quoted(key))]
    MetadataNotString {
        /// The key of the value.
        key: Box<str>,
        /// What it is instead.
        found: Box<str>,
    },
    /// A metadata key is given twice.
    #[error("metadata {}: duplicate key", Quoted(key))]
    DuplicateMetadataKey {
        /// The key.
        key: Box<str>,
    },

    // -- The header's tensors.
    /// A tensor name is given twice.
    #[error("duplicate name in the header")]
    DuplicateTensor,
    /// A field of a tensor's entry is missing, given twice or of the wrong type.
    #[error("{message}")]
    InvalidTensor {
        /// The parser's message, with its position.
        message: Box<str>,
    },
    /// A dtype that the format does not have.
    #[error(transparent)]
    UnknownDtype(#[from] UnknownDtype),
    /// The size of a tensor in bits does not fit in a `usize`.
    #[error("shape {} of {dtype} overflows the address range", Shape(shape))]
    ShapeOverflow {
        /// The type of the elements.
        dtype: Dtype,
        /// The extents.
        shape: Box<[usize]>,
    },
    /// A tensor of a packed dtype does not end on a byte.
    #[error("shape {} of {dtype} is {bits} bits, not a whole number of bytes", Shape(shape))]
    PartialByte {
        /// The type of the elements.
        dtype: Dtype,
        /// The extents.
        shape: Box<[usize]>,
        /// The bits needed by dtype and shape.
        bits: usize,
    },
    /// A tensor has more or fewer bytes than its dtype and shape need.
    #[error("{found} bytes, shape {} of {dtype} needs {needed}", Shape(shape))]
    SizeMismatch {
        /// The type of the elements.
        dtype: Dtype,
        /// The extents.
        shape: Box<[usize]>,
        /// The bytes between the data offsets, or the length in memory.
        found: u64,
        /// The bytes needed by dtype and shape.
        needed: u64,
    },
    /// The offsets of a tensor are reversed.
    #[error("data offsets begin at {begin} and end before, at {end}")]
    OffsetsReversed {
        /// The first offset.
        begin: u64,
        /// The second offset, which is less.
        end: u64,
    },
    /// Two tensors claim the same bytes; the error names the later one.
    #[error("data offset {begin} overlaps tensor {}, which ends at {other_end}", Quoted(other))]
    Overlap {
        /// Where the tensor begins.
        begin: u64,
        /// The tensor before it.
        other: Box<str>,
        /// Where the tensor before it ends.
        other_end: u64,
    },
    /// Bytes before a tensor belong to no tensor.
    #[error("data offset {begin} leaves a hole: the bytes before it are used up to {expected}")]
    Hole {
        /// Where the tensor begins.
        begin: u64,
        /// Where it should begin: at the end of the tensor before it.
        expected: u64,
    },
    /// The file ends before its last tensor does; the error names the first tensor affected.
    #[error(
        "truncated: expected a file of {expected} bytes, found {found}; this is the first tensor affected"
    )]
    Truncated {
        /// The length of the file by its header.
        expected: u64,
        /// The length of the file.
        found: u64,
    },
    /// The file goes on after its last tensor.
    #[error(
        "{count} trailing bytes after the last tensor (HeaderOptions::trailing_bytes can allow them)"
    )]
    TrailingBytes {
        /// The number of bytes after it.
        count: u64,
    },

    // -- Asking for a tensor or a part of it.
    /// The file has no tensor of this name.
    #[error("not in this file{}", Similar(similar))]
    TensorNotFound {
        /// Similar names.
        similar: Box<[Box<str>]>,
    },
    /// A selection does not fit the tensor.
    #[error(transparent)]
    Selection(#[from] SelectionFault),

    // -- Typed access.
    /// The elements have another type, without a conversion to the requested one.
    #[error("is {dtype}, can be read as {}, not as {asked}", known.unwrap_or("bytes"))]
    DtypeMismatch {
        /// The type of the elements.
        dtype: Dtype,
        /// The Rust type of such elements; `None` for packed dtypes, which have bytes alone.
        known: Option<&'static str>,
        /// The requested Rust type.
        asked: &'static str,
    },
    /// The bytes are not aligned for the type; happens only to mapped and borrowed bytes.
    #[error("its bytes are not aligned to {align} for {dtype} (to_vec copies)")]
    Unaligned {
        /// The type of the elements.
        dtype: Dtype,
        /// The alignment that the type needs.
        align: usize,
    },
    /// A byte of a `BOOL` tensor is neither 0 nor 1.
    #[error("byte {index} of BOOL is {found}, not 0 or 1")]
    InvalidBool {
        /// The position of the byte.
        index: usize,
        /// The byte.
        found: u8,
    },
    /// The machine is big-endian, and the bytes of the file are little-endian.
    #[error("little-endian {dtype} has no view on a big-endian machine (to_vec converts)")]
    BigEndianHost {
        /// The type of the elements.
        dtype: Dtype,
    },

    // -- Names that the header has for itself, and writing.
    /// `__metadata__` is the header's own key and cannot name a tensor.
    #[error("the name is reserved for metadata")]
    ReservedName,
    /// Two tensors to be written have one name.
    #[error("a tensor of this name was added before")]
    NameTaken,
}
