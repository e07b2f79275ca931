//! A part of a tensor, without and with a place in memory.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::ops::Range;
use std::sync::Arc;

use tensorfile::ByteRuns;

use crate::plan::stays::Stays;
use crate::plan::transform::Transform;
use crate::weights::index::{IndexedTensor, TensorId};

/// A part of a tensor to load, and its transform.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) tensor: TensorId,
    /// The bytes to load, or `None` for all of the tensor.
    pub(crate) runs: Option<Arc<ByteRuns>>,
    /// How the bytes are converted on the way to memory.
    pub(crate) transform: Transform,
    /// Why a cast that was to convert it does not.
    pub(crate) stays: Option<Stays>,
}

impl Part {
    /// All of a tensor, as it is stored.
    pub(crate) fn whole(tensor: IndexedTensor<'_>) -> Self {
        Self { tensor: tensor.id(), runs: None, transform: Transform::Copy, stays: None }
    }

    /// Moves the part out, and leaves it without runs.
    pub(crate) fn take(&mut self) -> Self {
        Self { runs: self.runs.take(), ..*self }
    }
}

/// A part with its place in the memory of its shard.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) part: Part,
    pub(crate) memory_range: Range<u64>,
}

impl Placed {
    /// Bytes in memory.
    pub(crate) fn byte_len(&self) -> u64 {
        self.memory_range.end.saturating_sub(self.memory_range.start)
    }
}
