//! Marks tensors of a plan for conversion to another float type; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::collections::BTreeSet;

use tensorfile::{Float, FloatCast};

use super::{LoadPlan, Part, PlannedTensor, Stays};
use crate::Result;
use crate::partition::{TensorShape, is_companion};
use crate::plan::transform::Transform;
use crate::weights::index::IndexedTensor;

impl LoadPlan {
    /// Converts tensors of `F16`, `BF16` and `F32` to this type while they are read.
    ///
    /// Tensors of other types are not converted: integers, `F64`, and 8-bit and packed floats,
    /// whose values are meaningless without their scales. Nor are scales, zero points and other
    /// companions of a quantized weight, which are meaningless with other values: only
    /// [`cast_named`](Self::cast_named) converts them. [`PlannedTensor::stays`] says what stays and
    /// why, as do `Display` and `Serialize` of the plan.
    ///
    /// Each thread converts through a small buffer, so a load allocates memory for the converted
    /// elements only. [`FloatCast`] documents rounding. Every way of loading converts except
    /// [`map`](Self::map), which fails for such a tensor.
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
        let shapes: Vec<_> =
            self.index.iter().map(|tensor| TensorShape::from(tensor.info())).collect();
        self.cast_parts(to, |planned| match choose(planned.stored()) {
            false => Choice::Leave,
            true if is_companion(&shapes, planned.stored().id().position()) => Choice::Stay,
            true => Choice::Convert,
        })
    }

    /// Converts as [`cast`](Self::cast) does, but only the tensors with these names, also companions
    /// of quantized weights; an alias stands for its target.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorNotFound`](crate::ErrorKind::TensorNotFound) for a name that is not in the
    /// model, [`ErrorKind::NotPlanned`](crate::ErrorKind::NotPlanned) for one that is in the model
    /// but not in this plan.
    pub fn cast_named<N: AsRef<str>>(
        &self,
        to: Float,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Self> {
        let mut named = BTreeSet::new();
        for name in names {
            named.insert(self.get(name.as_ref())?.stored().id());
        }
        Ok(self.cast_parts(to, |planned| match named.contains(&planned.stored().id()) {
            true => Choice::Convert,
            false => Choice::Leave,
        }))
    }

    fn cast_parts(&self, to: Float, choose: impl Fn(PlannedTensor<'_>) -> Choice) -> Self {
        let part = |planned: PlannedTensor<'_>| {
            let part = planned.part().clone();
            let (stored, target) = (planned.stored().dtype(), to.dtype());
            match choose(planned) {
                Choice::Leave => part,
                // One that was converted by its name stays so.
                Choice::Stay if planned.dtype() != stored => part,
                Choice::Stay if Float::from_dtype(stored).is_some() && stored != target => {
                    Part { stays: Some(Stays::Companion), ..part }
                }
                Choice::Stay | Choice::Convert => {
                    let cast = FloatCast::new(stored, to);
                    let stays = (cast.is_none() && stored != target).then_some(Stays::Dtype);
                    Part { transform: Transform::from(cast), stays, ..part }
                }
            }
        };
        let plan = Self::of_parts(&self.index, self.planned().map(part).collect());
        let (partition_report, part_record) =
            (self.partition_report.clone(), self.part_record.clone());
        Self { partition_report, part_record, ..plan }
    }

    /// Whether any tensor is converted.
    pub(crate) fn has_cast(&self) -> bool {
        self.planned().any(|planned| planned.cast().is_some())
    }
}

/// What a cast does with a tensor.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// It is not for this tensor.
    Leave,
    /// It is, but the tensor is the companion of a quantized weight.
    Stay,
    Convert,
}
