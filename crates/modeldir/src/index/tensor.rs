//! One tensor of an index and its shard.

use std::ops::Range;

use tensorfile::{Dtype, TensorInfo};

use super::id::TensorId;
use super::shard::Shard;

/// A tensor of the model and the shard that holds it.
#[derive(Clone, Copy, Debug)]
pub struct IndexedTensor<'a> {
    pub(super) id: TensorId,
    pub(super) info: &'a TensorInfo,
    pub(super) shard: &'a Shard,
}

impl<'a> IndexedTensor<'a> {
    /// The name.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.info.name()
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(self) -> Dtype {
        self.info.dtype()
    }

    /// The extent of each dimension, in elements.
    #[must_use]
    pub fn shape(self) -> &'a [usize] {
        self.info.shape()
    }

    /// The length of the tensor in bytes.
    #[must_use]
    pub fn byte_len(self) -> usize {
        self.info.byte_len()
    }

    /// The range of the tensor's bytes in the shard's file.
    #[must_use]
    pub fn file_range(self) -> Range<u64> {
        self.info.file_range()
    }

    /// The weight file that holds the tensor.
    #[must_use]
    pub fn shard(self) -> &'a Shard {
        self.shard
    }

    /// The tensor's entry in the header.
    #[must_use]
    pub fn info(self) -> &'a TensorInfo {
        self.info
    }

    /// The id of the tensor in its index.
    pub(crate) fn id(self) -> TensorId {
        self.id
    }
}
