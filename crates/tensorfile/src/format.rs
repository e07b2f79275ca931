//! The few constants that the format fixes, for reader and writer.

/// Bytes before the JSON: its length, as a little-endian integer.
pub(crate) const PREFIX_LEN: usize = 8;

/// The key of a header that does not name a tensor but holds the metadata.
pub(crate) const METADATA_KEY: &str = "__metadata__";

/// The longest header in bytes that the reference reads, and so the longest to be written.
pub(crate) const MAX_HEADER_BYTES: u64 = 100_000_000;
