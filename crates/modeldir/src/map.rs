//! Maps a plan: the tensors are views of the files, read when they are touched.
#![expect(unsafe_code, reason = "a mapped file must not change, and only the caller can see to it")]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use tensorfile::{Buffer, Tensor};
use tracing::debug_span;

use crate::Result;
use crate::index::IndexedTensor;
use crate::load::LoadStats;
use crate::plan::LoadPlan;
use crate::store::TensorStore;

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
    /// model was opened.
    pub unsafe fn map(&self) -> Result<TensorStore> {
        let _span = debug_span!("map", tensors = self.len()).entered();
        let mut maps: BTreeMap<usize, Buffer> = BTreeMap::new();
        let mut tensors = Vec::with_capacity(self.len());
        for tensor in self.tensors() {
            let buffer = match maps.entry(tensor.shard()) {
                Entry::Occupied(mapped) => mapped.into_mut(),
                Entry::Vacant(place) => {
                    let file = self.index.open_shard(tensor.shard())?;
                    // SAFETY: the caller keeps the files unchanged while a tensor lives.
                    place.insert(unsafe { file.map() }?)
                }
            };
            tensors.push(view(tensor, buffer.clone())?);
        }
        Ok(TensorStore::new(&self.index, tensors, LoadStats::default()))
    }
}

/// The tensor as a part of its mapped file.
fn view(tensor: IndexedTensor<'_>, file: Buffer) -> Result<Tensor> {
    let Range { start, end } = tensor.file_range();
    // The mapping has the length that the header was checked against, so both fit.
    let in_memory = |position| usize::try_from(position).unwrap_or(usize::MAX);
    let range = in_memory(start)..in_memory(end);
    Ok(Tensor::new(tensor.name(), tensor.dtype(), tensor.shape(), file, range)?)
}
