//! `HeaderOptions`: limits of a header, and whether bytes may follow the last tensor.

use crate::format::{MAX_HEADER_BYTES, MAX_NAME_BYTES, MAX_RANK, MAX_TENSORS};

/// Limits applied when a header is parsed.
///
/// A header over a limit is refused with an error that gives the number found, the limit, and the
/// field that raises it. The largest published models have some thousand tensors per file, names of
/// less than 200 bytes and five dimensions. Fields may be added: write
/// `..HeaderOptions::default()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderOptions {
    /// The longest JSON that is read, in bytes; 100,000,000 by default, as in the reference, and
    /// never more than 4,294,967,295.
    ///
    /// The peak memory of reading a header, including its text, is at most 6 times its length,
    /// whatever it holds: four to five times for tensors with short names and no bytes, four times
    /// for metadata of short entries, and about twice for the headers of models. If `max_rank` is
    /// raised, a shape of millions of dimensions takes 11 times. For a header of 1 MiB or more,
    /// four times its length is allocated and freed beforehand, so that too little memory is an
    /// error.
    pub max_header_bytes: u64,
    /// Tensors that a file may declare; 1,000,000 by default.
    pub max_tensors: usize,
    /// Bytes that the name of a tensor may have; 65,536 by default.
    pub max_name_bytes: usize,
    /// Dimensions that a shape may have; 64 by default, the maximum of NumPy.
    pub max_rank: usize,
    /// Whether bytes may follow the last tensor.
    pub trailing_bytes: TrailingBytes,
}

impl Default for HeaderOptions {
    fn default() -> Self {
        Self {
            max_header_bytes: MAX_HEADER_BYTES,
            max_tensors: MAX_TENSORS,
            max_name_bytes: MAX_NAME_BYTES,
            max_rank: MAX_RANK,
            trailing_bytes: TrailingBytes::Refuse,
        }
    }
}

/// What to do with bytes after the last tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrailingBytes {
    /// Refuse the file; the error gives their number.
    #[default]
    Refuse,
    /// Accept the file; [`Header::trailing_bytes`](crate::Header::trailing_bytes) counts them.
    Allow,
}
