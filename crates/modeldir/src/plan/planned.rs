//! The tensors of a plan, each with what is taken of it and its place in memory.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::ops::Range;

use tensorfile::{ByteRuns, Dtype, FloatCast};

use super::{LoadPlan, Part, Placed};
use crate::index::IndexedTensor;
use crate::layout::Layout;
use crate::request::Request;
use crate::{Error, Result};

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
        self.cast().map_or(self.stored.dtype(), |cast| cast.to().dtype())
    }

    /// The conversion of the elements as they are read, if there is one.
    #[must_use]
    pub fn cast(self) -> Option<FloatCast> {
        self.part().cast
    }

    /// The extents of what is taken of the tensor, outermost first.
    #[must_use]
    pub fn shape(self) -> &'a [usize] {
        self.runs().map_or(self.stored.shape(), ByteRuns::shape)
    }

    /// Bytes in memory.
    #[must_use]
    pub fn byte_len(self) -> usize {
        usize::try_from(self.placed.byte_len()).unwrap_or(usize::MAX)
    }

    /// What is taken of the tensor, and what becomes of it.
    pub(crate) fn part(self) -> &'a Part {
        &self.placed.part
    }

    /// What is wanted of the tensor, or `None` for all of it.
    pub(crate) fn runs(self) -> Option<&'a ByteRuns> {
        self.part().runs.as_deref()
    }

    /// Its place in the memory of its shard.
    pub(crate) fn memory_range(self) -> Range<u64> {
        self.placed.memory_range.clone()
    }

    /// The reads of the tensor by itself, and where its memory starts in them.
    pub(crate) fn requests(self) -> (Vec<Request>, u64) {
        let mut layout = Layout::default();
        let memory_range = layout.place(self.stored, self.part());
        (layout.finish().0, memory_range.start)
    }
}

impl LoadPlan {
    /// What the plan makes of a tensor, given by its name or an alias.
    ///
    /// # Errors
    ///
    /// [`Error::TensorNotFound`] for a name that the model does not have, [`Error::NotPlanned`] for
    /// one that this plan has left out.
    pub fn get(&self, name: &str) -> Result<PlannedTensor<'_>> {
        let stored = self.index.resolve(name)?;
        let tensor_at = |position: &u32| self.nth(*position).part.tensor;
        let found = self.by_name.binary_search_by_key(&stored.id(), tensor_at);
        let position = found.ok().and_then(|found| self.by_name.get(found));
        let not_planned =
            || Error::NotPlanned { path: self.index.root.clone(), tensor: name.into() };
        let placed = self.nth(*position.ok_or_else(not_planned)?);
        Ok(PlannedTensor { stored, placed })
    }

    /// What the plan makes of its tensors, by name.
    pub fn planned(&self) -> impl ExactSizeIterator<Item = PlannedTensor<'_>> {
        self.by_name.iter().map(|position| self.pair(self.nth(*position)))
    }

    /// What the plan makes of its tensors, by shard and in file order: the order in which
    /// [`stream`](Self::stream) hands them over.
    pub fn in_file_order(&self) -> impl ExactSizeIterator<Item = PlannedTensor<'_>> {
        self.placed.iter().map(|placed| self.pair(placed))
    }

    /// A part of this plan with the tensor that it is of.
    pub(crate) fn pair<'a>(&'a self, placed: &'a Placed) -> PlannedTensor<'a> {
        PlannedTensor { stored: self.index.tensor(placed.part.tensor), placed }
    }

    fn nth(&self, position: u32) -> &Placed {
        self.placed.get(position as usize).expect("positions are those of the list beside them")
    }
}
