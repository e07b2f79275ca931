//! A tensor of a plan: what is taken of it, what becomes of it, and where it goes in memory.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::ops::Range;
use std::sync::Arc;

use tensorfile::{ByteRuns, Dtype, FloatCast};

use super::LoadPlan;
use crate::Result;
use crate::index::IndexedTensor;

/// A tensor as it will be in memory, and the stored one of which it is a part.
///
/// ```
/// use modeldir::{Dtype, Float, LoadOptions, ModelDir, Selection};
///
/// let model = ModelDir::open(modeldir_fixtures::model("llama"))?;
/// let plan = model.plan().cast(Float::F32);
/// let norm = plan.get("model.norm.weight")?;
/// assert_eq!((norm.dtype(), norm.stored().dtype()), (Dtype::F32, Dtype::BF16));
/// // Memory of one's own for `load_into` is as long as this says.
/// assert_eq!((norm.byte_len(), norm.stored().byte_len()), (256, 128));
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PlannedTensor<'a> {
    stored: IndexedTensor<'a>,
    placed: &'a Placed,
}

impl<'a> PlannedTensor<'a> {
    /// The name.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.stored.name()
    }

    /// The tensor as it is in its shard, whole.
    #[must_use]
    pub fn stored(self) -> IndexedTensor<'a> {
        self.stored
    }

    /// The type of the elements in memory.
    #[must_use]
    pub fn dtype(self) -> Dtype {
        self.placed.dtype(self.stored)
    }

    /// The conversion of the elements as they are read, if there is one.
    #[must_use]
    pub fn cast(self) -> Option<FloatCast> {
        self.placed.cast
    }

    /// The extents of what is taken of the tensor, outermost first.
    #[must_use]
    pub fn shape(self) -> &'a [usize] {
        self.placed.shape(self.stored)
    }

    /// Bytes in memory.
    #[must_use]
    pub fn byte_len(self) -> usize {
        usize::try_from(self.placed.byte_len()).unwrap_or(usize::MAX)
    }
}

impl LoadPlan {
    /// What the plan makes of a tensor, given by its name or an alias.
    ///
    /// # Errors
    ///
    /// [`Error::TensorNotFound`](crate::Error::TensorNotFound) for a name that the model does not
    /// have, [`Error::NotPlanned`](crate::Error::NotPlanned) for one that this plan has left out.
    pub fn get(&self, name: &str) -> Result<PlannedTensor<'_>> {
        let position = self.planned_position(name)?;
        let found = self.index.get(position).zip(self.find(position));
        let (stored, placed) = found.ok_or_else(|| self.index.not_found(name))?;
        Ok(PlannedTensor { stored, placed })
    }

    /// What the plan makes of its tensors, by name.
    pub fn planned(&self) -> impl Iterator<Item = PlannedTensor<'_>> {
        self.tensors.iter().filter_map(|placed| {
            let stored = self.index.get(placed.tensor)?;
            Some(PlannedTensor { stored, placed })
        })
    }
}

/// A tensor of a plan, the part of it that is wanted, and the place in the memory of its shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// The position in the index, by name.
    pub(crate) tensor: usize,
    pub(crate) memory_range: Range<u64>,
    /// What is wanted of the tensor, or `None` for all of it.
    pub(crate) runs: Option<Arc<ByteRuns>>,
    /// The conversion of its elements, or `None` if they stay what they are.
    pub(crate) cast: Option<FloatCast>,
}

impl Placed {
    /// All of the tensor at this position, as it is stored, and without a place yet.
    pub(crate) const fn whole(tensor: usize) -> Self {
        Self { tensor, memory_range: 0..0, runs: None, cast: None }
    }

    /// The shape of the part that is wanted of its tensor.
    pub(crate) fn shape<'a>(&'a self, stored: IndexedTensor<'a>) -> &'a [usize] {
        self.runs.as_ref().map_or(stored.shape(), |runs| runs.shape())
    }

    /// The type of its elements in memory.
    pub(crate) fn dtype(&self, stored: IndexedTensor<'_>) -> Dtype {
        self.cast.map_or(stored.dtype(), |cast| cast.to().dtype())
    }

    /// Bytes in memory.
    pub(crate) fn byte_len(&self) -> u64 {
        self.memory_range.end.saturating_sub(self.memory_range.start)
    }
}
