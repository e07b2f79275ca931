//! One read of a plan: which bytes of a shard, what is wanted of them, and where they go; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use tensorfile::FloatCast;

use crate::index::ShardId;

/// Longest read of a plan: long enough for full device speed, short enough to share out.
pub(crate) const MAX_REQUEST_BYTES: u64 = 8 << 20;

/// One request of a plan: bytes of a shard and where they go in the memory of its tensors.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The shard that is read.
    pub(crate) shard: ShardId,
    /// The bytes of the shard's file from the first that is wanted to the last.
    pub file_range: Range<u64>,
    /// Where the bytes go in the memory that the tensors of this shard share.
    pub memory_offset: u64,
    /// What is wanted of the bytes, if not all. Requests for one tensor share it.
    pub rows: Option<Arc<RowCut>>,
    /// How the elements are converted on their way to memory, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cast: Option<FloatCast>,
}

/// Parts of evenly spaced rows.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RowCut {
    /// Bytes from one row to the next.
    pub stride: u64,
    /// Number of rows.
    pub count: u64,
    /// What is wanted of the first row, from the start of the request's `file_range`, in the order
    /// in which it goes to memory.
    pub runs: Vec<Range<u64>>,
    /// Whether the rows are read whole and parts are copied, or each run is read by itself.
    pub is_block: bool,
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
        match &self.rows {
            Some(rows) if !rows.is_block => rows.wanted_len(),
            _ => self.file_range.end.saturating_sub(self.file_range.start),
        }
    }

    /// Bytes of memory that the request fills.
    #[must_use]
    pub fn memory_len(&self) -> u64 {
        let wanted = self.rows.as_ref().map_or_else(|| self.byte_len(), |rows| rows.wanted_len());
        self.cast.map_or(wanted, |cast| cast.byte_len(wanted))
    }

    /// Whether another one could be a part of this read: it follows in file and memory.
    pub(crate) fn is_followed_by(&self, next: &Self) -> bool {
        self.shard == next.shard
            && self.rows.is_none()
            && next.rows.is_none()
            && self.cast == next.cast
            && self.file_range.end == next.file_range.start
            && self.memory_offset.saturating_add(self.memory_len()) == next.memory_offset
    }
}

impl RowCut {
    /// Bytes that are wanted of all rows.
    pub(crate) fn wanted_len(&self) -> u64 {
        self.row_len().saturating_mul(self.count)
    }

    /// Bytes that are wanted of each row.
    pub(crate) fn row_len(&self) -> u64 {
        let lens = self.runs.iter().map(|run| run.end.saturating_sub(run.start));
        lens.fold(0, u64::saturating_add)
    }

    /// Bytes from the first that is wanted to the last.
    pub(crate) fn byte_len(&self) -> u64 {
        let last_end = self.runs.iter().map(|run| run.end).max().unwrap_or(0);
        self.stride.saturating_mul(self.count.saturating_sub(1)).saturating_add(last_end)
    }
}
