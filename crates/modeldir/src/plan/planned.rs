//! `PlannedTensor`: a tensor of a plan, with its part to load and its place in memory.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::ops::Range;

use tensorfile::{ByteRuns, Dtype, FloatCast};

use super::{Part, Placed, Stays};
use crate::plan::layout::{Layout, in_memory};
use crate::plan::request::Request;
use crate::plan::transform::Transform;
use crate::weights::index::IndexedTensor;

/// A tensor of a plan: dtype, shape and bytes it will have in memory, and the stored tensor.
///
/// ```
/// use modeldir::{Dtype, Float, LoadOptions, ModelDir, Selection};
///
/// # let path = modeldir_fixtures::model("llama");
/// let model = ModelDir::open(path)?;
/// let plan = model.plan().cast(Float::F32);
/// let norm = plan.get("model.norm.weight")?;
/// assert_eq!((norm.dtype(), norm.stored().dtype()), (Dtype::F32, Dtype::BF16));
/// // A buffer for `load_into` has this length.
/// assert_eq!((norm.byte_len(), norm.stored().byte_len()), (256, 128));
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PlannedTensor<'a> {
    stored: IndexedTensor<'a>,
    placed: &'a Placed,
}

impl<'a> PlannedTensor<'a> {
    /// Pairs a part with its tensor.
    pub(super) const fn new(stored: IndexedTensor<'a>, placed: &'a Placed) -> Self {
        Self { stored, placed }
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.stored.name()
    }

    /// The whole tensor as it is stored in its shard.
    #[must_use]
    pub fn stored(self) -> IndexedTensor<'a> {
        self.stored
    }

    /// The type of the elements in memory.
    #[must_use]
    pub fn dtype(self) -> Dtype {
        self.part().transform.dtype(self.stored.dtype())
    }

    /// The conversion of the elements while they are read, or `None`.
    #[must_use]
    pub fn cast(self) -> Option<FloatCast> {
        match self.part().transform {
            Transform::Copy => None,
            Transform::Cast(cast) => Some(cast),
        }
    }

    /// Why the tensor keeps its stored type although a [cast](super::LoadPlan::cast) was to convert
    /// it; `None` if it is converted, has that type already, or no cast was to convert it.
    #[must_use]
    pub fn stays(self) -> Option<Stays> {
        self.part().stays
    }

    /// The shape in memory: the extents of the selected part, outermost first.
    #[must_use]
    pub fn shape(self) -> &'a [usize] {
        self.runs().map_or(self.stored.shape(), ByteRuns::shape)
    }

    /// Bytes in memory.
    #[must_use]
    pub fn byte_len(self) -> usize {
        in_memory(self.placed.byte_len())
    }

    /// The part to load, and its transform.
    pub(crate) fn part(self) -> &'a Part {
        &self.placed.part
    }

    /// The bytes to load, or `None` for all of the tensor.
    pub(crate) fn runs(self) -> Option<&'a ByteRuns> {
        self.part().runs.as_deref()
    }

    /// Its place in the memory of its shard.
    pub(crate) fn memory_range(self) -> Range<u64> {
        self.placed.memory_range.clone()
    }

    /// The requests for this tensor alone, and its start in the memory that they fill.
    pub(crate) fn requests(self) -> (Vec<Request>, u64) {
        let mut layout = Layout::for_parts(1);
        let memory_range = layout.place(self.stored, self.part());
        (layout.finish().0, memory_range.start)
    }
}
