//! The numbers by which an index knows its tensors and shards.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use serde::Serialize;

/// A tensor of one index. Only the index makes them, so there always is one of this number; they are
/// in the order of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TensorId(u32);

impl TensorId {
    /// That of the tensor at a position in the order of names, which the join counts in 32 bits.
    pub(super) fn at(position: usize) -> Self {
        Self(u32::try_from(position).unwrap_or(u32::MAX))
    }

    /// The position in the order of names.
    pub(super) const fn position(self) -> usize {
        self.0 as usize
    }
}

/// A shard of one index. Only the index makes them, so there always is one of this number; they are
/// in the order of [`ModelDir::shards`](crate::ModelDir::shards).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct ShardId(u32);

impl ShardId {
    /// That of the shard with this number.
    pub(super) const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its place in the list of shards.
    pub(crate) const fn position(self) -> usize {
        self.0 as usize
    }

    /// The one after it.
    pub(super) const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// A number of no index in particular.
    #[cfg(test)]
    pub(crate) const fn for_test(number: u32) -> Self {
        Self(number)
    }
}
