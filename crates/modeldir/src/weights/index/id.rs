//! The ids of an index for its tensors and shards.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use serde::Serialize;

/// Identifies a tensor of one index. Only the index makes ids, so the tensor always exists; ids are
/// in the order of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TensorId(u32);

impl TensorId {
    /// The id of the tensor at a position in the order of names; the join uses 32 bits for
    /// positions.
    pub(super) fn at(position: usize) -> Self {
        Self(u32::try_from(position).unwrap_or(u32::MAX))
    }

    /// The position in the order of names.
    pub(crate) const fn position(self) -> usize {
        self.0 as usize
    }
}

/// Identifies a shard of one index. Only the index makes ids, so the shard always exists; ids are
/// in the order of [`ModelDir::shards`](crate::ModelDir::shards).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct ShardId(u32);

impl ShardId {
    /// The id of the shard at this position.
    pub(super) const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The position in the list of shards.
    pub(crate) const fn position(self) -> usize {
        self.0 as usize
    }

    /// The id after this one.
    pub(super) const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// An id of no particular index.
    #[cfg(test)]
    pub(crate) const fn for_test(number: u32) -> Self {
        Self(number)
    }
}
