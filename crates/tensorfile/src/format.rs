//! The constants shared by reader and writer.

/// Bytes before the JSON: its length, as a little-endian integer.
pub(crate) const PREFIX_LEN: usize = 8;

/// The key of a header that does not name a tensor but holds the metadata.
pub(crate) const METADATA_KEY: &str = "__metadata__";

/// The longest header in bytes that the reference reads, and so the longest written by default.
pub(crate) const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The longest header in bytes that can be read or written at all: positions in it are 32-bit.
pub(crate) const LONGEST_HEADER_BYTES: u64 = u32::MAX as u64;

/// Tensors that a file may declare by default.
pub(crate) const MAX_TENSORS: usize = 1_000_000;

/// Bytes that a tensor's name may have by default.
pub(crate) const MAX_NAME_BYTES: usize = 65_536;

/// Dimensions that a shape may have by default: the maximum of NumPy.
pub(crate) const MAX_RANK: usize = 64;

/// The path in errors of a file in memory.
pub(crate) const IN_MEMORY: &str = "<memory>";
