//! What to load: the chosen tensors, where they go in memory, and the reads that bring them; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod cast;
mod lowering;
mod planned;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use tensorfile::{FloatCast, PathText, Selection};
use tracing::debug_span;
use tracing::field::Empty;

use crate::index::{Index, IndexedTensor};
use crate::layout::ShardLayout;
use crate::partition::{Cut, PartitionReport};
use crate::request::Request;
use crate::{Error, Result};
use lowering::Lowering;

pub(crate) use planned::Placed;
pub use planned::PlannedTensor;

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
    tensors: Vec<Placed>,
    /// By shard, in file order.
    requests: Vec<Request>,
    /// Bytes of memory by shard, for each from which something is read.
    memory: BTreeMap<usize, u64>,
    partition_report: Option<Arc<PartitionReport>>,
}

impl LoadPlan {
    /// Plans all of these tensors, given by their positions in the index, in order.
    pub(crate) fn new(index: Arc<Index>, tensors: impl IntoIterator<Item = usize>) -> Self {
        Self::of_parts(index, tensors.into_iter().map(Placed::whole))
    }

    /// Plans the parts that a rank takes, given in the order of the index.
    pub(crate) fn for_rank(index: &Arc<Index>, cut: Cut) -> Result<Self> {
        let parts = cut.parts.iter().enumerate();
        let parts = parts.filter_map(|(i, part)| Some((i, None, part.as_ref()?)));
        let plan = Self::of_selections(index, parts)?;
        Ok(Self { partition_report: Some(Arc::new(cut.report)), ..plan })
    }

    /// Plans selections of tensors, in the order of the index.
    fn of_selections<'s>(
        index: &Arc<Index>,
        selections: impl Iterator<Item = (usize, Option<FloatCast>, &'s Selection)>,
    ) -> Result<Self> {
        let mut lowering = Lowering::new(index);
        let parts: Vec<_> = selections
            .map(|(i, cast, selection)| {
                Ok(Placed { runs: lowering.runs(i, selection)?, cast, ..Placed::whole(i) })
            })
            .collect::<Result<_>>()?;
        Ok(Self::of_parts(Arc::clone(index), parts))
    }

    /// Plans these parts of tensors, in the order of the index; where they were placed before does
    /// not matter.
    fn of_parts(index: Arc<Index>, parts: impl IntoIterator<Item = Placed>) -> Self {
        let span = debug_span!("plan", tensors = Empty, bytes = Empty, requests = Empty).entered();
        let plan = Self::laid_out(index, parts.into_iter().collect());
        span.record("tensors", plan.len());
        span.record("bytes", plan.bytes_selected());
        span.record("requests", plan.requests.len());
        plan
    }

    /// Some of the tensors of this plan, with memory of their own. It costs what they cost, however
    /// many tensors and shards the model has.
    pub(crate) fn part(&self, tensors: &[&Placed]) -> Self {
        let tensors = tensors.iter().map(|placed| (*placed).clone()).collect();
        Self::laid_out(Arc::clone(&self.index), tensors)
    }

    fn laid_out(index: Arc<Index>, tensors: Vec<Placed>) -> Self {
        let (requests, memory) = (Vec::new(), BTreeMap::new());
        let mut plan = Self { index, tensors, requests, memory, partition_report: None };
        plan.lay_out();
        plan
    }

    /// Keeps the tensors that `choose` accepts.
    #[must_use]
    pub fn filter(&self, choose: impl Fn(IndexedTensor<'_>) -> bool) -> Self {
        let chosen = |p: &&Placed| self.index.get(p.tensor).is_some_and(&choose);
        self.keep(self.tensors.iter().filter(chosen))
    }

    /// Takes of each tensor the part that `choose` selects, and leaves out those for which it gives
    /// `None`.
    ///
    /// A selection is of the whole tensor, whatever an earlier one took of it; a
    /// [cast](Self::cast) stays. Parts are contiguous in memory, in the order of the selection.
    ///
    /// ```
    /// use modeldir::{ModelDir, Selection};
    ///
    /// let model = ModelDir::open(modeldir_fixtures::model("llama"))?;
    /// // The second half of the columns of every output projection, and nothing else.
    /// let plan = model.plan().select(|tensor| {
    ///     let [_, columns] = *tensor.shape() else { return None };
    ///     let half = Selection::all().with_range(1, columns / 2..columns);
    ///     tensor.name().ends_with("o_proj.weight").then_some(half)
    /// })?;
    /// let store = plan.load(&Default::default())?;
    /// assert_eq!(store.get("model.layers.0.self_attn.o_proj.weight")?.shape(), [64, 32]);
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a selection that does not fit its tensor.
    pub fn select(&self, choose: impl Fn(IndexedTensor<'_>) -> Option<Selection>) -> Result<Self> {
        let chosen: Vec<_> = self
            .tensors
            .iter()
            .filter_map(|placed| Some((placed, choose(self.index.get(placed.tensor)?)?)))
            .collect();
        let chosen = chosen.iter().map(|(placed, part)| (placed.tensor, placed.cast, part));
        Self::of_selections(&self.index, chosen)
    }

    /// Keeps the tensors with these names; an alias stands for its target.
    ///
    /// # Errors
    ///
    /// [`Error::TensorNotFound`] for a name that the model does not have, [`Error::NotPlanned`] for
    /// one that this plan has left out.
    pub fn only<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Result<Self> {
        let mut kept = BTreeSet::new();
        for name in names {
            kept.insert(self.planned_position(name.as_ref())?);
        }
        Ok(self.keep(self.tensors.iter().filter(|planned| kept.contains(&planned.tensor))))
    }

    /// The tensors, by name.
    pub fn tensors(&self) -> impl Iterator<Item = IndexedTensor<'_>> {
        self.tensors.iter().filter_map(|placed| self.index.get(placed.tensor))
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

    /// Bytes of the tensors, as they are in memory after loading: after a [cast](Self::cast).
    #[must_use]
    pub fn bytes_selected(&self) -> u64 {
        self.tensors.iter().map(Placed::byte_len).fold(0, u64::saturating_add)
    }

    /// Bytes that loading reads from the shards.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.requests.iter().map(Request::byte_len).fold(0, u64::saturating_add)
    }

    /// Bytes of memory that loading allocates for tensors: those selected and what aligns them.
    #[must_use]
    pub fn memory_len(&self) -> u64 {
        self.memory.values().copied().fold(0, u64::saturating_add)
    }

    /// The reads, by shard and in file order.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// What was odd about the rules by which [`ModelDir::plan_for`](crate::ModelDir::plan_for) made
    /// the plan; `None` for other plans, and for plans that were narrowed since.
    #[must_use]
    pub fn partition_report(&self) -> Option<&PartitionReport> {
        self.partition_report.as_deref()
    }

    pub(crate) fn placed(&self) -> &[Placed] {
        &self.tensors
    }

    /// Bytes of memory by shard; none for a shard from which nothing is read.
    pub(crate) fn memory(&self) -> &BTreeMap<usize, u64> {
        &self.memory
    }

    fn keep<'p>(&self, kept: impl Iterator<Item = &'p Placed>) -> Self {
        Self::of_parts(Arc::clone(&self.index), kept.cloned())
    }

    /// The position in the index of a tensor of this plan, by its name or an alias.
    pub(crate) fn planned_position(&self, name: &str) -> Result<usize> {
        let position = self.index.position(self.index.aliases.target(name));
        let position = position.ok_or_else(|| self.index.not_found(name))?;
        if self.find(position).is_none() {
            let (path, tensor) = (self.index.root.clone(), name.into());
            return Err(Error::NotPlanned { path, tensor });
        }
        Ok(position)
    }

    /// The tensor of this plan that is at a position in the index.
    fn find(&self, position: usize) -> Option<&Placed> {
        let found = self.tensors.binary_search_by_key(&position, |placed| placed.tensor);
        self.tensors.get(found.ok()?)
    }

    /// The reads of one tensor by itself, and where its memory starts in them.
    pub(crate) fn requests_of(&self, placed: &Placed) -> (Vec<Request>, u64) {
        let Some(tensor) = self.index.get(placed.tensor) else { return (Vec::new(), 0) };
        let mut layout = ShardLayout::new(tensor.shard(), Vec::new());
        let memory_range = layout.place_part(tensor, placed.runs.as_deref(), placed.cast);
        (layout.finish().0, memory_range.start)
    }

    /// Finds a place in memory for each part, shard by shard and in file order.
    fn lay_out(&mut self) {
        let position = |(i, placed): (usize, &Placed)| {
            let tensor = self.index.get(placed.tensor)?;
            Some((tensor.shard(), tensor.file_range().start, i))
        };
        let mut in_order: Vec<_> = self.tensors.iter().enumerate().filter_map(position).collect();
        in_order.sort_unstable();
        for of_shard in in_order.chunk_by(|(shard, ..), (next, ..)| shard == next) {
            let Some((shard, ..)) = of_shard.first() else { continue };
            let mut layout = ShardLayout::new(*shard, mem::take(&mut self.requests));
            for (.., i) in of_shard {
                let Some(placed) = self.tensors.get_mut(*i) else { continue };
                let Some(tensor) = self.index.get(placed.tensor) else { continue };
                let runs = placed.runs.as_deref();
                placed.memory_range = layout.place_part(tensor, runs, placed.cast);
            }
            let (requests, memory_len) = layout.finish();
            self.requests = requests;
            if memory_len > 0 {
                self.memory.insert(*shard, memory_len);
            }
        }
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

/// A line for each shard from which something is taken, then the sums.
impl fmt::Display for LoadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shard, summary) in self.index.shards.iter().zip(self.per_shard()) {
            let ShardSummary { tensors, reads, bytes } = summary;
            if tensors == 0 {
                continue;
            }
            writeln!(
                f,
                "{}: {tensors} tensors, {bytes} bytes, {reads} reads",
                PathText(shard.path())
            )?;
        }
        let (tensors, reads) = (self.len(), self.requests.len());
        let (selected, read) = (self.bytes_selected(), self.bytes_read());
        write!(f, "{tensors} tensors, {selected} bytes, {reads} reads")?;
        if read == selected { Ok(()) } else { write!(f, " of {read} bytes") }
    }
}

/// What a run needs to know: for each tensor its name, dtype, shape and place in the memory of its
/// shard, and the requests. Paths are text, with what is not UTF-8 replaced.
impl Serialize for LoadPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shards: Vec<_> = self.index.shards.iter().map(|s| s.path().to_string_lossy()).collect();
        let memory_of = |shard| self.memory.get(&shard).copied().unwrap_or(0);
        let memory: Vec<u64> = (0..shards.len()).map(memory_of).collect();
        let tensor = |(placed, stored): (&Placed, IndexedTensor<'_>)| TensorPlace {
            name: stored.name().to_owned(),
            dtype: placed.dtype(stored).name(),
            stored_dtype: placed.cast.map(|cast| cast.from().dtype().name()),
            shape: placed.shape(stored).to_vec(),
            shard: stored.shard(),
            memory_range: placed.memory_range.clone(),
        };
        let tensors: Vec<_> = self.tensors.iter().zip(self.tensors()).map(tensor).collect();
        let mut plan = serializer.serialize_struct("LoadPlan", 5)?;
        plan.serialize_field("root", &self.index.root.to_string_lossy())?;
        plan.serialize_field("shards", &shards)?;
        plan.serialize_field("memory", &memory)?;
        plan.serialize_field("tensors", &tensors)?;
        plan.serialize_field("requests", &self.requests)?;
        plan.end()
    }
}

/// A tensor of a plan as it is serialised.
#[derive(Serialize)]
struct TensorPlace {
    name: String,
    /// As it is in memory.
    dtype: &'static str,
    /// As it is in the file, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_dtype: Option<&'static str>,
    shape: Vec<usize>,
    shard: usize,
    memory_range: Range<u64>,
}
