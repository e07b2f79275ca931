//! Which tensors of a plan are converted to another float type as they are read; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use tensorfile::{Float, FloatCast};

use super::{LoadPlan, Part, PlannedTensor};
use crate::index::IndexedTensor;
use crate::transform::Transform;

impl LoadPlan {
    /// Converts the tensors of `F16`, `BF16` and `F32` to this type as they are read.
    ///
    /// All others stay what they are: integers, `F64`, and the 8-bit and packed floats, whose
    /// values say nothing without scales. Bytes of the file go by way of a small piece of memory of
    /// each thread straight to their place, so that a load takes the bytes after the conversion and
    /// no more. [`FloatCast`] says how values are rounded. Any way of loading does it, except
    /// [`map`](Self::map), which cannot.
    ///
    /// Scales of quantized tensors are floats of these types too; [`cast_where`](Self::cast_where)
    /// can leave them alone.
    ///
    /// ```
    /// use modeldir::{Dtype, Float, ModelDir};
    ///
    /// let model = ModelDir::open(modeldir_fixtures::model("llama"))?;
    /// let plan = model.plan().cast(Float::F32);
    /// assert_eq!(plan.bytes_selected(), 2 * plan.bytes_read());
    /// let store = plan.load(&Default::default())?;
    /// let norm: &[f32] = store.get("model.norm.weight")?.as_slice()?;
    /// assert_eq!(norm, model.read("model.norm.weight")?.to_f32()?);
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    #[must_use]
    pub fn cast(&self, to: Float) -> Self {
        self.cast_where(to, |_| true)
    }

    /// Does what [`cast`](Self::cast) does for the tensors that `choose` accepts, and leaves the
    /// others as they were.
    ///
    /// Elements are converted once: a later cast of a tensor takes the place of an earlier one.
    ///
    /// ```
    /// use modeldir::{Dtype, Float, ModelDir};
    ///
    /// let model = ModelDir::open(modeldir_fixtures::model("llama"))?;
    /// let is_norm = |name: &str| name.ends_with("norm.weight");
    /// let plan = model.plan().cast(Float::F16).cast_where(Float::F32, |t| is_norm(t.name()));
    /// let store = plan.load(&Default::default())?;
    /// assert_eq!(store.get("model.norm.weight")?.dtype(), Dtype::F32);
    /// assert_eq!(store.get("model.embed_tokens.weight")?.dtype(), Dtype::F16);
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    #[must_use]
    pub fn cast_where(&self, to: Float, choose: impl Fn(IndexedTensor<'_>) -> bool) -> Self {
        let part = |planned: PlannedTensor<'_>| {
            let is_chosen = choose(planned.stored());
            let part = planned.part().clone();
            let new = || Transform::from(FloatCast::new(planned.stored().dtype(), to));
            Part { transform: if is_chosen { new() } else { part.transform }, ..part }
        };
        let plan = Self::of_parts(&self.index, self.planned().map(part).collect());
        Self { partition_report: self.partition_report.clone(), ..plan }
    }
}
