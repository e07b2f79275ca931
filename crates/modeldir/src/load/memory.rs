//! The memory of a load: one region for each shard, new or from a store that has given it up.

use std::collections::BTreeMap;
use std::fmt;

use tensorfile::{Buffer, BufferMut, Tensor};

use crate::Result;
use crate::plan::LoadPlan;

/// Memory that a store has given up, for the next load; see [`LoadPlan::load_reusing`].
#[derive(Default)]
pub struct Memory {
    /// By length.
    regions: BTreeMap<usize, Vec<BufferMut>>,
}

impl Memory {
    /// The memory of these tensors, as far as nobody else has a tensor or buffer of it.
    pub(crate) fn of(tensors: impl Iterator<Item = Tensor>) -> Self {
        let mut buffers: BTreeMap<usize, Buffer> = BTreeMap::new();
        for tensor in tensors {
            let buffer = tensor.buffer();
            buffers.entry(buffer.as_ptr().addr()).or_insert_with(|| buffer.clone());
        }
        let mut memory = Self::default();
        for buffer in buffers.into_values() {
            memory.add(buffer);
        }
        memory
    }

    /// Bytes of all regions.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.regions.iter().map(|(len, regions)| (len * regions.len()) as u64).sum()
    }

    /// Adds a region, unless somebody else has it.
    pub(super) fn add(&mut self, buffer: Buffer) {
        if let Ok(region) = buffer.into_mut() {
            self.regions.entry(region.len()).or_default().push(region);
        }
    }

    /// Takes the shortest region of at least this length.
    pub(super) fn take(&mut self, byte_len: usize) -> Option<BufferMut> {
        let mut fitting = self.regions.range_mut(byte_len..);
        fitting.find_map(|(_, regions)| regions.pop())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("byte_len", &self.byte_len()).finish_non_exhaustive()
    }
}

/// The regions of a load by the positions of their shards; none for a shard that nothing is read
/// from.
pub(super) type Regions = BTreeMap<usize, BufferMut>;

/// A region for each shard: of this memory what fits, and new ones, which nothing has touched yet.
pub(super) fn regions(plan: &LoadPlan, mut memory: Memory) -> Result<Regions> {
    let lens = plan.memory().iter().map(|&len| usize::try_from(len).unwrap_or(usize::MAX));
    let needed: Vec<_> = lens.enumerate().filter(|(_, len)| *len > 0).collect();
    let reused: Vec<_> = needed.iter().map(|(_, len)| memory.take(*len)).collect();
    // What does not fit is given back before anything new is asked for.
    drop(memory);
    let mut regions = Regions::new();
    for ((shard, len), reused) in needed.into_iter().zip(reused) {
        let new = || BufferMut::with_len(&plan.index.shard_path(shard), len);
        regions.insert(shard, reused.map_or_else(new, Ok)?);
    }
    Ok(regions)
}

/// The same regions, shareable and fixed.
pub(super) fn freeze(regions: Regions) -> BTreeMap<usize, Buffer> {
    regions.into_iter().map(|(shard, region)| (shard, region.freeze())).collect()
}
