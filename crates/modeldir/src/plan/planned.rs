//! A tensor of a plan with what is taken of it and its place in memory.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::ops::Range;

use tensorfile::{ByteRuns, Dtype, FloatCast};

use super::{Part, Placed};
use crate::index::IndexedTensor;
use crate::layout::{Layout, in_memory};
use crate::request::Request;
use crate::transform::Transform;

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
    /// A part and the tensor of which it is one.
    pub(super) const fn new(stored: IndexedTensor<'a>, placed: &'a Placed) -> Self {
        Self { stored, placed }
    }

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
        self.part().transform.dtype(self.stored.dtype())
    }

    /// The conversion of the elements as they are read, if there is one.
    #[must_use]
    pub fn cast(self) -> Option<FloatCast> {
        match self.part().transform {
            Transform::Copy => None,
            Transform::Cast(cast) => Some(cast),
        }
    }

    /// The extents of what is taken of the tensor, outermost first.
    #[must_use]
    pub fn shape(self) -> &'a [usize] {
        self.runs().map_or(self.stored.shape(), ByteRuns::shape)
    }

    /// Bytes in memory.
    #[must_use]
    pub fn byte_len(self) -> usize {
        in_memory(self.placed.byte_len())
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
