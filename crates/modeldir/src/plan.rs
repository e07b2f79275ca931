//! `LoadPlan`: the chosen tensors, their places in memory, and the reads that fill them; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod cast;
pub(crate) mod layout;
mod lowering;
mod part;
mod parts;
mod planned;
pub(crate) mod request;
mod shown;
mod stays;
pub(crate) mod transform;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tensorfile::Selection;
use tracing::debug_span;
use tracing::field::Empty;

use crate::partition::{Cut, PartitionReport};
use crate::rank_part::PartRecord;
use crate::weights::index::{Index, IndexedTensor, ShardId};
use crate::{ErrorKind, Result};
use layout::Layout;
use lowering::Lowering;

pub use crate::rank_part::RankPart;
pub(crate) use part::{Part, Placed};
pub use planned::PlannedTensor;
pub use request::Request;
pub use stays::Stays;
pub use transform::Transform;

/// The tensors to load, and the reads that load them.
///
/// A plan is made from headers alone, so it can be printed and compared before any tensor is read.
/// [`load`](Self::load) reads exactly its [`requests`](Self::requests). A plan stays valid when the
/// [`ModelDir`](crate::ModelDir) is dropped.
///
/// Methods that narrow or cast return a new plan and leave the old one unchanged.
///
/// ```
/// use modeldir::ModelDir;
///
/// # let path = modeldir_fixtures::model("llama");
/// let model = ModelDir::open(path)?;
/// let plan = model.plan().filter(|tensor| tensor.name().starts_with("model.layers.0."));
/// assert!(plan.bytes_selected() < model.byte_len());
/// assert_eq!(plan.bytes_read(), plan.requests().iter().map(|r| r.byte_len()).sum::<u64>());
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone)]
pub struct LoadPlan {
    pub(crate) index: Arc<Index>,
    /// By shard, in file order.
    placed: Vec<Placed>,
    /// Positions in `placed`, by name.
    by_name: Vec<u32>,
    /// By shard, in file order.
    requests: Vec<Request>,
    /// Bytes of memory by shard, for each shard that is read.
    memory: BTreeMap<ShardId, u64>,
    partition_report: Option<Arc<PartitionReport>>,
    /// Whose part of a model this is, or a part of it.
    pub(crate) part_record: Option<Arc<PartRecord>>,
}

impl LoadPlan {
    /// Plans all bytes of these tensors, given in name order.
    pub(crate) fn new<'i>(
        index: &'i Arc<Index>,
        tensors: impl IntoIterator<Item = IndexedTensor<'i>>,
    ) -> Self {
        let plan = Self::of_parts(index, tensors.into_iter().map(Part::whole).collect());
        Self { part_record: index.part_record.clone(), ..plan }
    }

    /// Plans the parts of a rank: one or none for each tensor of the index, in its order.
    pub(crate) fn for_rank(index: &Arc<Index>, cut: Cut, record: PartRecord) -> Result<Self> {
        let parts = index.iter().zip(&cut.parts);
        let parts = parts.filter_map(|(tensor, part)| Some((Part::whole(tensor), part.as_ref()?)));
        let plan = Self::of_selections(index, parts)?;
        let (report, record) = (Some(Arc::new(cut.report)), Some(Arc::new(record)));
        Ok(Self { partition_report: report, part_record: record, ..plan })
    }

    /// Plans selections of tensors, given in name order, in place of the bytes of these parts.
    fn of_selections<'s>(
        index: &Arc<Index>,
        selections: impl Iterator<Item = (Part, &'s Selection)>,
    ) -> Result<Self> {
        let mut lowering = Lowering::new(&index.root);
        let parts = selections.map(|(part, selection)| {
            let runs = lowering.runs(index.tensor(part.tensor), selection)?;
            Ok(Part { runs, ..part })
        });
        Ok(Self::of_parts(index, parts.collect::<Result<_>>()?))
    }

    /// Plans these parts of tensors, given in name order.
    fn of_parts(index: &Arc<Index>, parts: Vec<Part>) -> Self {
        let span = debug_span!("plan", tensors = Empty, bytes = Empty, requests = Empty).entered();
        let plan = Self::laid_out(index, parts);
        span.record("tensors", plan.len());
        span.record("bytes", plan.bytes_selected());
        span.record("requests", plan.requests.len());
        plan
    }

    /// Plans some of the tensors of this plan, with memory of their own. The cost depends on the
    /// number of these tensors alone, not on the size of the model.
    pub(crate) fn part(&self, tensors: &[Placed]) -> Self {
        let mut parts: Vec<Part> = tensors.iter().map(|placed| placed.part.clone()).collect();
        parts.sort_unstable_by_key(|part| part.tensor);
        Self::laid_out(&self.index, parts)
    }

    /// Lays out these parts, given in name order, in memory: shard by shard and in file order.
    fn laid_out(index: &Arc<Index>, mut parts: Vec<Part>) -> Self {
        let place = |(i, part): (u32, &Part)| {
            let tensor = index.tensor(part.tensor);
            (tensor.shard().id(), i, tensor.file_range().start)
        };
        let mut in_order: Vec<_> = (0..).zip(&parts).map(place).collect();
        // Tensors without bytes can have the same start; they are ordered by name.
        in_order.sort_unstable_by_key(|&(shard, i, start)| (shard, start, i));
        let mut by_name = vec![0; parts.len()];
        let mut layout = Layout::for_parts(parts.len());
        let mut placed = Vec::with_capacity(in_order.len());
        for (position, (_, i, _)) in (0..).zip(in_order) {
            let part = nth_mut(&mut parts, i).take();
            let memory_range = layout.place(index.tensor(part.tensor), &part);
            placed.push(Placed { part, memory_range });
            *nth_mut(&mut by_name, i) = position;
        }
        let (requests, memory) = layout.finish();
        let index = Arc::clone(index);
        let (partition_report, part_record) = (None, None);
        Self { index, placed, by_name, requests, memory, partition_report, part_record }
    }

    /// Keeps the tensors for which `choose` returns true.
    #[must_use]
    pub fn filter(&self, choose: impl Fn(IndexedTensor<'_>) -> bool) -> Self {
        self.keep(|planned| choose(planned.stored()))
    }

    /// Keeps the selected part of each tensor, and drops the tensors for which `choose` returns
    /// `None`.
    ///
    /// A selection is relative to the whole stored tensor, and replaces an earlier selection. A
    /// [cast](Self::cast) is kept. Each part is contiguous in memory, in the order of its
    /// selection.
    ///
    /// ```
    /// use modeldir::{ModelDir, Selection};
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// let model = ModelDir::open(path)?;
    /// // The second half of the columns of every output projection, and nothing else.
    /// let plan = model.plan().select(|tensor| {
    ///     let [_, columns] = *tensor.shape() else { return None };
    ///     let half = Selection::all().with_range(1, columns / 2..columns);
    ///     tensor.name().ends_with("o_proj.weight").then_some(half)
    /// })?;
    /// let store = plan.load()?;
    /// assert_eq!(store.get("model.layers.0.self_attn.o_proj.weight")?.shape(), [64, 32]);
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::File`] for a selection that does not fit its tensor.
    pub fn select(&self, choose: impl Fn(IndexedTensor<'_>) -> Option<Selection>) -> Result<Self> {
        let chosen: Vec<_> = self
            .planned()
            .filter_map(|planned| Some((planned, choose(planned.stored())?)))
            .collect();
        let chosen = chosen.iter().map(|(planned, part)| (planned.part().clone(), part));
        Self::of_selections(&self.index, chosen)
    }

    /// Keeps the tensors with these names; an alias stands for its target.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorNotFound`] for a name that is not in the model,
    /// [`ErrorKind::NotPlanned`] for one that is in the model but not in this plan.
    pub fn only<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Result<Self> {
        let mut kept = BTreeSet::new();
        for name in names {
            kept.insert(self.get(name.as_ref())?.stored().id());
        }
        Ok(self.keep(|planned| kept.contains(&planned.stored().id())))
    }

    /// The planned tensor of this name or alias.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorNotFound`] for a name that is not in the model,
    /// [`ErrorKind::NotPlanned`] for one that is in the model but not in this plan.
    pub fn get(&self, name: &str) -> Result<PlannedTensor<'_>> {
        let stored = self.index.resolve(name)?;
        let tensor_at = |position: &u32| self.nth(*position).part.tensor;
        let found = self.by_name.binary_search_by_key(&stored.id(), tensor_at);
        let position = found.ok().and_then(|found| self.by_name.get(found));
        let not_planned = || ErrorKind::NotPlanned.at(&self.index.root).in_tensor(name);
        let placed = self.nth(*position.ok_or_else(not_planned)?);
        Ok(PlannedTensor::new(stored, placed))
    }

    /// The planned tensors, in name order.
    pub fn planned(&self) -> impl ExactSizeIterator<Item = PlannedTensor<'_>> {
        self.by_name.iter().map(|position| self.pair(self.nth(*position)))
    }

    /// The planned tensors, by shard and in file order: the order in which
    /// [`stream`](Self::stream) delivers them.
    pub fn in_file_order(&self) -> impl ExactSizeIterator<Item = PlannedTensor<'_>> {
        self.placed.iter().map(|placed| self.pair(placed))
    }

    /// The stored tensors of the plan, in name order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = IndexedTensor<'_>> {
        self.planned().map(PlannedTensor::stored)
    }

    /// The names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tensors().map(IndexedTensor::name)
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.placed.len()
    }

    /// Whether the plan has no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.placed.is_empty()
    }

    /// Bytes of the tensors in memory, after any [cast](Self::cast).
    #[must_use]
    pub fn bytes_selected(&self) -> u64 {
        self.placed.iter().map(Placed::byte_len).fold(0, u64::saturating_add)
    }

    /// Bytes that loading reads from the shards.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.requests.iter().map(Request::byte_len).fold(0, u64::saturating_add)
    }

    /// Bytes of memory that loading allocates for tensors, including padding for alignment.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.values().copied().fold(0, u64::saturating_add)
    }

    /// The reads, by shard and in file order.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// Unused rules, unmatched tensors and replicated bytes, for a plan made by
    /// [`ModelDir::plan_for`](crate::ModelDir::plan_for). `None` for other plans, and for plans
    /// narrowed from it with `filter`, `select`, `only` or `parts`.
    #[must_use]
    pub fn partition_report(&self) -> Option<&PartitionReport> {
        self.partition_report.as_deref()
    }

    /// A part of this plan with its tensor.
    pub(crate) fn pair<'a>(&'a self, placed: &'a Placed) -> PlannedTensor<'a> {
        PlannedTensor::new(self.index.tensor(placed.part.tensor), placed)
    }

    fn nth(&self, position: u32) -> &Placed {
        self.placed.get(position as usize).expect("positions are those of the list beside them")
    }

    /// The parts and their places, by shard and in file order.
    pub(crate) fn placed(&self) -> &[Placed] {
        &self.placed
    }

    /// Bytes of memory by shard; no entry for a shard that is not read.
    pub(crate) fn memory(&self) -> &BTreeMap<ShardId, u64> {
        &self.memory
    }

    fn keep(&self, choose: impl Fn(PlannedTensor<'_>) -> bool) -> Self {
        let kept = self.planned().filter(|planned| choose(*planned));
        let plan =
            Self::of_parts(&self.index, kept.map(|planned| planned.part().clone()).collect());
        Self { part_record: self.part_record.clone(), ..plan }
    }
}

/// The item at a position of a list.
fn nth_mut<T>(list: &mut [T], position: u32) -> &mut T {
    list.get_mut(position as usize).expect("positions are those of the list")
}
