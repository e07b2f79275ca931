//! How the bytes of a tensor change between file and memory.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use serde::Serialize;
use tensorfile::{Dtype, FloatCast};

/// How the bytes of a tensor change between file and memory.
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
    /// The type in memory of elements stored as this type.
    #[must_use]
    pub fn dtype(self, stored: Dtype) -> Dtype {
        match self {
            Self::Copy => stored,
            Self::Cast(cast) => cast.target().dtype(),
        }
    }

    /// Bytes in memory for this many bytes of the file, which are whole [units](Self::unit_len).
    #[must_use]
    pub fn memory_bytes(self, stored_len: u64) -> u64 {
        match self {
            Self::Copy => stored_len,
            Self::Cast(cast) => cast.byte_len(stored_len),
        }
    }

    /// Length in the file of a unit, which no read may split.
    #[must_use]
    pub fn unit_len(self) -> u64 {
        match self {
            Self::Copy => 1,
            Self::Cast(cast) => cast.source().byte_len() as u64,
        }
    }

    /// Whether bytes need no change, and can be read straight to their place.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        matches!(self, Self::Copy)
    }

    /// Writes stored bytes, which are whole units, to their place in memory.
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
