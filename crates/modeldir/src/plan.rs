//! What to load: the chosen tensors, where they go in memory, and the reads that bring them; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::SerializeStruct;
use tensorfile::PathText;

use crate::Result;
use crate::index::{Index, IndexedTensor, Shard};
use crate::layout::{Request, ShardLayout};

/// A list of reads, and the tensors they bring.
///
/// A plan is made from headers alone: it can be printed, counted and compared before a byte of a
/// tensor is read, and [`load`](Self::load) reads exactly its [`requests`](Self::requests). It
/// shares the model's index and stays valid when the [`ModelDir`](crate::ModelDir) is dropped.
///
/// ```
/// use modeldir::ModelDir;
///
/// let model = ModelDir::open(modeldir_fixtures::model("llama"))?;
/// let plan = model.plan().filter(|tensor| tensor.name().starts_with("model.layers.0."));
/// assert!(plan.bytes_selected() < model.byte_len());
/// assert_eq!(plan.bytes_read(), plan.requests().iter().map(|r| r.byte_len()).sum::<u64>());
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone)]
pub struct LoadPlan {
    pub(crate) index: Arc<Index>,
    /// By name.
    tensors: Vec<PlannedTensor>,
    /// By shard, in file order.
    requests: Vec<Request>,
    /// Bytes of memory per shard; 0 for a shard from which nothing is read.
    memory: Vec<u64>,
}

/// A tensor of a plan and its place in the memory of its shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PlannedTensor {
    /// The position in the index, by name.
    pub(crate) tensor: usize,
    pub(crate) memory_range: Range<u64>,
}

impl LoadPlan {
    /// Plans these tensors, given by their positions in the index.
    pub(crate) fn new(index: Arc<Index>, tensors: impl IntoIterator<Item = usize>) -> Self {
        let mut by_shard: Vec<Vec<usize>> = vec![Vec::new(); index.shards.len()];
        for i in tensors {
            let shard = index.get(i).map(IndexedTensor::shard);
            if let Some(in_shard) = shard.and_then(|shard| by_shard.get_mut(shard)) {
                in_shard.push(i);
            }
        }
        let mut plan =
            Self { index, tensors: Vec::new(), requests: Vec::new(), memory: Vec::new() };
        for (shard, in_shard) in by_shard.into_iter().enumerate() {
            plan.add_shard(shard, in_shard);
        }
        plan.tensors.sort_unstable_by_key(|planned| planned.tensor);
        plan
    }

    /// Keeps the tensors that `choose` accepts.
    #[must_use]
    pub fn filter(&self, choose: impl Fn(IndexedTensor<'_>) -> bool) -> Self {
        let chosen = |&i: &usize| self.index.get(i).is_some_and(&choose);
        Self::new(Arc::clone(&self.index), self.tensors.iter().map(|p| p.tensor).filter(chosen))
    }

    /// Keeps the tensors with these names; an alias stands for its target.
    ///
    /// # Errors
    ///
    /// [`Error::TensorNotFound`](crate::Error::TensorNotFound) for a name that the plan does not
    /// hold.
    pub fn only<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Self> {
        let mut kept = BTreeSet::new();
        for name in names {
            let position = self.index.position(self.index.aliases.target(name));
            kept.insert(
                position.filter(|&i| self.holds(i)).ok_or_else(|| self.index.not_found(name))?,
            );
        }
        Ok(Self::new(Arc::clone(&self.index), kept))
    }

    /// The tensors, by name.
    pub fn tensors(&self) -> impl Iterator<Item = IndexedTensor<'_>> {
        self.tensors.iter().filter_map(|planned| self.index.get(planned.tensor))
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors().map(IndexedTensor::name)
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there is no tensor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Bytes of the tensors, as they are in memory after loading.
    #[must_use]
    pub fn bytes_selected(&self) -> u64 {
        self.tensors().map(|tensor| tensor.byte_len() as u64).fold(0, u64::saturating_add)
    }

    /// Bytes that loading reads from the shards.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.requests.iter().map(Request::byte_len).fold(0, u64::saturating_add)
    }

    /// Bytes of memory that loading allocates for tensors: those selected and what aligns them.
    #[must_use]
    pub fn memory_len(&self) -> u64 {
        self.memory.iter().copied().fold(0, u64::saturating_add)
    }

    /// The reads, by shard and in file order.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    pub(crate) fn planned(&self) -> &[PlannedTensor] {
        &self.tensors
    }

    pub(crate) fn memory(&self) -> &[u64] {
        &self.memory
    }

    fn holds(&self, tensor: usize) -> bool {
        self.tensors.binary_search_by_key(&tensor, |planned| planned.tensor).is_ok()
    }

    /// Lays out the chosen tensors of the next shard.
    fn add_shard(&mut self, shard: usize, mut chosen: Vec<usize>) {
        let file_range = |&i: &usize| self.index.get(i).map(IndexedTensor::file_range);
        chosen.sort_unstable_by_key(|i| file_range(i).map(|range| (range.start, range.end)));
        let mut layout = ShardLayout::new(shard);
        for i in chosen {
            let Some(tensor) = self.index.get(i) else { continue };
            let memory_range = layout.place(tensor.file_range(), tensor.dtype().align() as u64);
            self.tensors.push(PlannedTensor { tensor: i, memory_range });
        }
        let (requests, memory_len) = layout.finish();
        self.requests.extend(requests);
        self.memory.push(memory_len);
    }

    /// What is read from each shard.
    fn per_shard(&self) -> Vec<ShardSummary> {
        let mut summaries = vec![ShardSummary::default(); self.index.shards.len()];
        for tensor in self.tensors() {
            if let Some(summary) = summaries.get_mut(tensor.shard()) {
                summary.tensors = summary.tensors.saturating_add(1);
            }
        }
        for request in &self.requests {
            if let Some(summary) = summaries.get_mut(request.shard) {
                summary.reads = summary.reads.saturating_add(1);
                summary.bytes = summary.bytes.saturating_add(request.byte_len());
            }
        }
        summaries
    }
}

/// What a plan takes from one shard.
#[derive(Clone, Debug, Default)]
struct ShardSummary {
    tensors: usize,
    reads: usize,
    bytes: u64,
}

impl fmt::Debug for LoadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadPlan")
            .field("root", &self.index.root)
            .field("tensors", &self.len())
            .field("bytes_selected", &self.bytes_selected())
            .field("requests", &self.requests.len())
            .finish_non_exhaustive()
    }
}

/// A line for each shard, then the sums.
impl fmt::Display for LoadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shard, summary) in self.index.shards.iter().zip(self.per_shard()) {
            let ShardSummary { tensors, reads, bytes } = summary;
            writeln!(
                f,
                "{}: {tensors} tensors, {bytes} bytes, {reads} reads",
                PathText(shard.path())
            )?;
        }
        let (tensors, reads) = (self.len(), self.requests.len());
        write!(f, "{tensors} tensors, {} bytes, {reads} reads", self.bytes_selected())
    }
}

/// The requests, and each tensor with its place: all that a run needs to know.
impl Serialize for LoadPlan {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shards: Vec<_> = self.index.shards.iter().map(Shard::path).collect();
        let tensors: Vec<_> = self.tensors().map(IndexedTensor::name).zip(&self.tensors).collect();
        let mut plan = serializer.serialize_struct("LoadPlan", 4)?;
        plan.serialize_field("root", &self.index.root)?;
        plan.serialize_field("shards", &shards)?;
        plan.serialize_field("tensors", &tensors)?;
        plan.serialize_field("requests", &self.requests)?;
        plan.end()
    }
}
