//! The memory of a load: one region per shard, new or reused from another store.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use tensorfile::{Buffer, BufferMut, ErrorKind, Tensor};

use crate::Result;
use crate::plan::layout::in_memory;
use crate::plan::{LoadPlan, PlannedTensor};
use crate::weights::index::ShardId;

/// Memory of a former store, for the next load; see [`LoadPlan::load_reusing`].
#[derive(Default)]
pub struct Memory {
    /// By length.
    regions: BTreeMap<usize, Vec<BufferMut>>,
}

impl Memory {
    /// The regions of these tensors, without those that another `Tensor` or `Buffer` references.
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

    /// Total bytes of the regions.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.regions.iter().map(|(len, regions)| (len * regions.len()) as u64).sum()
    }

    /// Adds a region, unless it is referenced elsewhere.
    pub(super) fn add(&mut self, buffer: Buffer) {
        if let Ok(region) = buffer.into_mut() {
            self.regions.entry(region.len()).or_default().push(region);
        }
    }

    /// Takes the shortest region of at least this length that has at most `spare` bytes more.
    fn take(&mut self, byte_len: usize, spare: usize) -> Option<BufferMut> {
        let mut fitting = self.regions.range_mut(byte_len..=byte_len.saturating_add(spare));
        fitting.find_map(|(_, regions)| regions.pop())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("byte_len", &self.byte_len()).finish_non_exhaustive()
    }
}

/// The most bytes by which reused regions may exceed what is needed, in total.
const MAX_SPARE: usize = 32 << 20;

/// The regions of a load by shard; a shard from which nothing is read has none.
pub(super) type Regions = BTreeMap<ShardId, BufferMut>;

/// A region for each shard: reused where one fits, or new and untouched.
///
/// `check` is called with the bytes of the new regions before any is allocated.
pub(super) fn regions(
    plan: &LoadPlan,
    mut memory: Memory,
    check: impl FnOnce(u64) -> Result<()>,
) -> Result<Regions> {
    let lens = plan.memory().iter();
    let mut needed: Vec<_> = lens.map(|(shard, len)| (*shard, in_memory(*len))).collect();
    // The longest first, or a short shard could take a region that a long one needs.
    needed.sort_by_key(|(_, len)| Reverse(*len));
    let mut spare = MAX_SPARE;
    let mut reuse = |len| {
        let region = memory.take(len, spare)?;
        spare -= region.len() - len;
        Some(region)
    };
    let reused: Vec<_> = needed.iter().map(|(_, len)| reuse(*len)).collect();
    // Regions that do not fit are freed before new ones are allocated.
    drop(memory);
    let new = needed.iter().zip(&reused).filter(|(_, reused)| reused.is_none());
    check(new.map(|((_, len), _)| *len as u64).fold(0, u64::saturating_add))?;
    let mut regions = Regions::new();
    for ((shard, len), reused) in needed.into_iter().zip(reused) {
        let at_shard = |kind: ErrorKind| kind.at(plan.index.shard_path(shard));
        let new = || BufferMut::with_len(len).map_err(at_shard);
        regions.insert(shard, reused.map_or_else(new, Ok)?);
    }
    Ok(regions)
}

/// The regions, now read-only and shareable.
pub(super) fn freeze(regions: Regions) -> BTreeMap<ShardId, Buffer> {
    regions.into_iter().map(|(shard, region)| (shard, region.freeze())).collect()
}

/// Tensors of the plan as parts of the regions of their shards.
pub(super) fn tensors<'p>(
    plan: &LoadPlan,
    planned: impl ExactSizeIterator<Item = PlannedTensor<'p>>,
    buffers: &BTreeMap<ShardId, Buffer>,
) -> Result<Vec<Tensor>> {
    // Aligned for every element type, unlike a vector without memory.
    let empty = BufferMut::with_len(0).map_err(|kind| kind.at(&*plan.index.root))?.freeze();
    let mut tensors = Vec::with_capacity(planned.len());
    for planned in planned {
        let memory = planned.memory_range();
        // An empty tensor may have its place where no region is, or behind the end of one.
        let (buffer, range) = match buffers.get(&planned.stored().shard().id()) {
            Some(buffer) if !memory.is_empty() => {
                (buffer, in_memory(memory.start)..in_memory(memory.end))
            }
            _ => (&empty, 0..0),
        };
        let (name, dtype, shape) = (planned.name(), planned.dtype(), planned.shape());
        tensors.push(Tensor::new(name, dtype, shape, buffer.clone(), range)?);
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use tensorfile::BufferMut;

    use super::{MAX_SPARE, Memory, regions};
    use crate::ModelDir;

    /// Memory in regions of these lengths; it is not touched.
    fn memory(lens: impl IntoIterator<Item = usize>) -> Memory {
        let mut memory = Memory::default();
        for len in lens {
            memory.add(BufferMut::with_len(len).unwrap().freeze());
        }
        memory
    }

    /// A plan of two shards that need about this many bytes.
    fn plan(dir: &tempfile::TempDir, lens: [usize; 2]) -> crate::LoadPlan {
        for (i, len) in lens.into_iter().enumerate() {
            let path = dir.path().join(modeldir_fixtures::shard_name(i + 1, 2));
            let name = format!("w{i}");
            let tensor = modeldir_fixtures::Tensor::new(&name, "U8", &[len], vec![0; len]);
            std::fs::write(path, modeldir_fixtures::file(&[tensor])).unwrap();
        }
        ModelDir::open(dir.path()).unwrap().plan()
    }

    #[test]
    fn a_short_shard_takes_no_memory_that_a_long_one_needs() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(&dir, [100, 3 << 20]);
        let old = usize::try_from(plan.memory_bytes()).unwrap();
        let check = |new| {
            assert!(new < 1 << 20, "{new}");
            Ok(())
        };
        let regions = regions(&plan, memory([old]), check).unwrap();
        let [short, long] = [0, 1].map(|i| plan.index.shards()[i].id());
        assert_eq!(regions[&long].len(), old);
        assert!(regions[&short].len() < 1 << 20);
    }

    #[test]
    fn memory_that_nobody_needs_is_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(&dir, [100, 3 << 20]);
        let needed = usize::try_from(plan.memory_bytes()).unwrap();
        for old in [[MAX_SPARE, MAX_SPARE], [1 << 30, 1 << 30], [MAX_SPARE / 2, MAX_SPARE]] {
            let regions = regions(&plan, memory(old), |_| Ok(())).unwrap();
            let held: usize = regions.values().map(BufferMut::len).sum();
            assert!(held <= needed + MAX_SPARE, "{old:?}: {held}");
        }
    }
}
