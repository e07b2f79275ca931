//! What becomes of the bytes of a tensor on their way from its file to memory.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use serde::Serialize;
use tensorfile::{Dtype, FloatCast};

/// What becomes of the bytes of a tensor on their way from its file to memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Transform {
    /// Nothing: the bytes in memory are those of the file.
    #[default]
    Copy,
    /// The elements are converted to another float type.
    Cast(FloatCast),
}

impl Transform {
    /// The type in memory of elements that are stored in this one.
    #[must_use]
    pub fn dtype(self, stored: Dtype) -> Dtype {
        match self {
            Self::Copy => stored,
            Self::Cast(cast) => cast.target().dtype(),
        }
    }

    /// Bytes in memory of this many bytes of the file, which are whole [units](Self::unit_len).
    #[must_use]
    pub fn memory_len(self, stored_len: u64) -> u64 {
        match self {
            Self::Copy => stored_len,
            Self::Cast(cast) => cast.byte_len(stored_len),
        }
    }

    /// Bytes of the file that go together: a read must not end between them.
    #[must_use]
    pub fn unit_len(self) -> u64 {
        match self {
            Self::Copy => 1,
            Self::Cast(cast) => cast.source().byte_len() as u64,
        }
    }

    /// Whether bytes can be read straight to their place.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        matches!(self, Self::Copy)
    }

    /// Fills a place in memory with what becomes of stored bytes, which are whole units.
    pub(crate) fn apply(self, stored: &[u8], place: &mut [u8]) {
        match self {
            Self::Copy => place.copy_from_slice(stored),
            Self::Cast(cast) => cast.convert(stored, place),
        }
    }
}

/// The conversion, or none.
impl From<Option<FloatCast>> for Transform {
    fn from(cast: Option<FloatCast>) -> Self {
        cast.map_or(Self::Copy, Self::Cast)
    }
}
