//! The few constants that reader and writer share.

/// Bytes before the JSON: its length, as a little-endian integer.
pub(crate) const PREFIX_LEN: usize = 8;

/// The key of a header that does not name a tensor but holds the metadata.
pub(crate) const METADATA_KEY: &str = "__metadata__";

/// The longest header in bytes that the reference reads, and so the longest to be written.
pub(crate) const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The longest header in bytes that can be read at all, or written: places in it are counted in 32 bits.
pub(crate) const LONGEST_HEADER_BYTES: u64 = u32::MAX as u64;

/// Tensors that a file may declare unless more are asked for.
pub(crate) const MAX_TENSORS: usize = 1_000_000;

/// Bytes that a tensor's name may have unless more are asked for.
pub(crate) const MAX_NAME_BYTES: usize = 65_536;

/// Dimensions that a shape may have unless more are asked for: as many as NumPy has.
pub(crate) const MAX_RANK: usize = 64;

/// The path that errors give for a file in memory.
pub(crate) const IN_MEMORY: &str = "<memory>";
