//! One tensor of an index, with the shard that holds it.

use std::ops::Range;

use tensorfile::{Dtype, TensorInfo};

use super::id::{ShardId, TensorId};
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

    /// Bytes of the whole tensor.
    #[must_use]
    pub fn byte_len(self) -> usize {
        self.info.byte_len()
    }

    /// Where the bytes lie in the shard's file.
    #[must_use]
    pub fn file_range(self) -> Range<u64> {
        self.info.file_range()
    }

    /// The weight file that holds the tensor.
    #[must_use]
    pub fn shard(self) -> &'a Shard {
        self.shard
    }

    /// What the header says of the tensor.
    #[must_use]
    pub fn info(self) -> &'a TensorInfo {
        self.info
    }

    /// What the index calls it.
    pub(crate) fn id(self) -> TensorId {
        self.id
    }

    /// Its place in the order of shards and files. Tensors without bytes can share a start; their
    /// names decide then.
    pub(crate) fn file_order(self) -> (ShardId, u64, TensorId) {
        (self.shard.id(), self.info.file_range().start, self.id)
    }
}
