//! How a header is judged: limits, and what may follow the last tensor.

use crate::format::{MAX_HEADER_BYTES, MAX_NAME_BYTES, MAX_RANK, MAX_TENSORS};

/// How a header is judged.
///
/// A header beyond a limit is refused with an error that says how much there is, what the limit is,
/// and which field raises it. The largest models published have some thousand tensors a file, names
/// of less than 200 bytes and five dimensions. Fields may be added: `..HeaderOptions::default()` gives
/// those that are not spelled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderOptions {
    /// The longest JSON that is read, in bytes; 100,000,000 by default, as in the reference, and
    /// never more than 4,294,967,295.
    ///
    /// Reading a header takes, at its peak and with the text itself, at most 6 times its length,
    /// whatever it holds: four to five times for tensors of short names and no bytes, four times for
    /// metadata of short entries, and about twice for the headers of models. Where `max_rank` is
    /// raised, a shape of millions of dimensions takes 11 times. For a header of a MiB or more,
    /// four times its length is asked for beforehand and given back, so that too little memory is
    /// an error.
    pub max_header_bytes: u64,
    /// Tensors that a file may declare; 1,000,000 by default.
    pub max_tensors: usize,
    /// Bytes that the name of a tensor may have; 65,536 by default.
    pub max_name_bytes: usize,
    /// Dimensions that a shape may have; 64 by default, which is all that NumPy has.
    pub max_rank: usize,
    /// Whether the file may go on after its last tensor.
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

/// What to do with bytes after the last tensor, which belong to no tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrailingBytes {
    /// Refuse the file, saying how many there are.
    #[default]
    Refuse,
    /// Accept the file; [`Header::trailing_bytes`](crate::Header::trailing_bytes) counts them.
    Allow,
}
