//! Marks tensors of a plan for conversion to another float type; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use tensorfile::{Float, FloatCast};

use super::{LoadPlan, Part, PlannedTensor};
use crate::plan::transform::Transform;
use crate::weights::index::IndexedTensor;

impl LoadPlan {
    /// Converts tensors of `F16`, `BF16` and `F32` to this type while they are read.
    ///
    /// Tensors of other types are not converted: integers, `F64`, and 8-bit and packed floats,
    /// whose values are meaningless without their scales. Each thread converts through a small
    /// buffer, so a load allocates memory for the converted elements only. [`FloatCast`] documents
    /// rounding. Every way of loading converts except [`map`](Self::map), which fails for such a
    /// tensor.
    ///
    /// Scales of quantized tensors are floats too and are converted;
    /// [`cast_where`](Self::cast_where) can exclude them.
    ///
    /// ```
    /// use modeldir::{Dtype, Float, ModelDir};
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// let model = ModelDir::open(path)?;
    /// let plan = model.plan().cast(Float::F32);
    /// assert_eq!(plan.bytes_selected(), 2 * plan.bytes_read());
    /// let store = plan.load()?;
    /// let norm: &[f32] = store.get("model.norm.weight")?.as_slice()?;
    /// assert_eq!(norm, model.read("model.norm.weight")?.to_f32()?);
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    #[must_use]
    pub fn cast(&self, to: Float) -> Self {
        self.cast_where(to, |_| true)
    }

    /// Converts as [`cast`](Self::cast) does, but only tensors for which `choose` returns true.
    ///
    /// A later cast of a tensor replaces an earlier one, so elements are converted once.
    ///
    /// ```
    /// use modeldir::{Dtype, Float, ModelDir};
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// let model = ModelDir::open(path)?;
    /// let is_norm = |name: &str| name.ends_with("norm.weight");
    /// let plan = model.plan().cast(Float::F16).cast_where(Float::F32, |t| is_norm(t.name()));
    /// let store = plan.load()?;
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

    /// Whether any tensor is converted.
    pub(crate) fn has_cast(&self) -> bool {
        self.planned().any(|planned| planned.cast().is_some())
    }
}
