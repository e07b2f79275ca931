//! One request of a plan: the bytes read from a shard, their transform, and their place; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::ops::Range;

use serde::Serialize;
use tensorfile::Read;

use crate::plan::transform::Transform;
use crate::weights::index::ShardId;

/// One request of a plan: bytes of a shard and their place in the memory of its tensors.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The shard that is read.
    pub(crate) shard: ShardId,
    /// Where the bytes go in the memory that the tensors of this shard share.
    pub memory_range: Range<u64>,
    /// Which bytes of the shard's file are read, and which of these are wanted.
    pub read: Read,
    /// How the bytes change on the way to memory.
    #[serde(skip_serializing_if = "Transform::is_copy")]
    pub transform: Transform,
}

impl Request {
    /// The [position](crate::Shard::position) of the shard that is read.
    #[must_use]
    pub fn shard_position(&self) -> usize {
        self.shard.position()
    }

    /// Bytes that the request reads.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.read.byte_len()
    }

    /// Bytes of memory that the request fills.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_range.end.saturating_sub(self.memory_range.start)
    }

    /// Whether a range that starts here in the file, with this transform, could extend the request.
    pub(crate) fn ends_at(&self, file_start: u64, transform: Transform) -> bool {
        let is_end = matches!(&self.read, Read::Whole(range) if range.end == file_start);
        is_end && self.transform == transform
    }

    /// Extends the request by the next one, if that follows in file and memory; returns whether.
    pub(crate) fn join(&mut self, next: &Self) -> bool {
        let (Read::Whole(range), Read::Whole(more)) = (&mut self.read, &next.read) else {
            return false;
        };
        let follows = self.shard == next.shard
            && self.transform == next.transform
            && range.end == more.start
            && self.memory_range.end == next.memory_range.start;
        if follows {
            range.end = more.end;
            self.memory_range.end = next.memory_range.end;
        }
        follows
    }
}
