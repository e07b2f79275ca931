//! Maps a plan: the tensors are views of the files, read when they are touched.
#![expect(unsafe_code, reason = "a mapped file must not change, and only the caller can see to it")]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tensorfile::{Buffer, Tensor};
use tracing::debug_span;

use crate::index::IndexedTensor;
use crate::load::LoadStats;
use crate::plan::{LoadPlan, PlannedTensor};
use crate::store::TensorStore;
use crate::{Error, Result};

impl LoadPlan {
    /// Maps the shards of the plan; no byte is read or copied until it is touched.
    ///
    /// One mapping a shard, kept until its last tensor is dropped. Tensors lie in memory as they
    /// do in the file, so wide elements may be unaligned:
    /// [`as_slice`](tensorfile::Tensor::as_slice) says so and
    /// [`to_vec`](tensorfile::Tensor::to_vec) copies.
    ///
    /// # Safety
    ///
    /// Nothing may write to, shorten or replace the contents of the model's files while the store
    /// or any tensor from it lives. A tensor whose file is shortened, or lies on a disk that fails,
    /// kills the process with SIGBUS when it is touched; one whose file is written to changes
    /// behind a shared reference, which is undefined behaviour.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) if a shard cannot be mapped or has changed since the
    /// model was opened, [`Error::ScatteredMap`] for a part of a tensor that is not contiguous in
    /// its file.
    pub unsafe fn map(&self) -> Result<TensorStore> {
        let _span = debug_span!("map", tensors = self.len()).entered();
        let mut maps: BTreeMap<usize, Buffer> = BTreeMap::new();
        let mut tensors = Vec::with_capacity(self.len());
        for (planned, tensor) in self.planned().iter().zip(self.tensors()) {
            let buffer = match maps.entry(tensor.shard()) {
                Entry::Occupied(mapped) => mapped.into_mut(),
                Entry::Vacant(place) => {
                    let file = self.index.open_shard(tensor.shard())?;
                    // SAFETY: the caller keeps the files unchanged while a tensor lives.
                    place.insert(unsafe { file.map() }?)
                }
            };
            tensors.push(self.view(planned, tensor, buffer.clone())?);
        }
        Ok(TensorStore::new(&self.index, tensors, LoadStats::default()))
    }

    /// The wanted part of a tensor as a part of its mapped file.
    fn view(
        &self,
        planned: &PlannedTensor,
        tensor: IndexedTensor<'_>,
        file: Buffer,
    ) -> Result<Tensor> {
        let whole = tensor.file_range();
        let (start, end) = match &planned.runs {
            None => (whole.start, whole.end),
            Some(runs) if runs.num_runs() > 1 => {
                let (path, tensor) = (self.index.root.clone(), tensor.name().into());
                return Err(Error::ScatteredMap { path, tensor, runs: runs.num_runs() });
            }
            Some(runs) => {
                let span = runs.span();
                (whole.start + span.start as u64, whole.start + span.end as u64)
            }
        };
        // The mapping has the length that the header was checked against, so both fit.
        let in_memory = |position| usize::try_from(position).unwrap_or(usize::MAX);
        let range = in_memory(start)..in_memory(end);
        let shape = planned.shape(tensor);
        Ok(Tensor::new(tensor.name(), tensor.dtype(), shape, file, range)?)
    }
}
