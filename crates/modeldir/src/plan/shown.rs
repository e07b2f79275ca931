//! Prints and serialises a plan.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use tensorfile::{Dtype, PathText};

use super::{LoadPlan, PlannedTensor, Stays};
use crate::weights::index::ShardId;

/// The tensors, reads and bytes of a plan in one shard.
#[derive(Clone, Debug, Default)]
struct ShardSummary {
    tensors: usize,
    reads: usize,
    bytes: u64,
}

impl LoadPlan {
    /// A summary for each shard with planned tensors.
    fn per_shard(&self) -> BTreeMap<ShardId, ShardSummary> {
        let mut summaries: BTreeMap<_, ShardSummary> = BTreeMap::new();
        for tensor in self.tensors() {
            let summary = summaries.entry(tensor.shard().id()).or_default();
            summary.tensors = summary.tensors.saturating_add(1);
        }
        for request in &self.requests {
            let summary = summaries.entry(request.shard).or_default();
            summary.reads = summary.reads.saturating_add(1);
            summary.bytes = summary.bytes.saturating_add(request.byte_len());
        }
        summaries
    }
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

/// A line for each shard with planned tensors, the sums, and what stays in spite of a cast.
impl fmt::Display for LoadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shard, ShardSummary { tensors, reads, bytes }) in self.per_shard() {
            let path = PathText(self.index[shard].path());
            writeln!(f, "{path}: {tensors} tensors, {bytes} bytes, {reads} reads")?;
        }
        let (tensors, reads) = (self.len(), self.requests.len());
        let (selected, read) = (self.bytes_selected(), self.bytes_read());
        write!(f, "{tensors} tensors, {selected} bytes, {reads} reads")?;
        if read != selected {
            write!(f, " of {read} bytes")?;
        }
        write!(f, "{}", Staying(self))
    }
}

/// Displays what stays, by type and reason, after the sums of a plan; nothing without a cast.
struct Staying<'a>(&'a LoadPlan);

impl fmt::Display for Staying<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counts: BTreeMap<(Dtype, Stays), usize> = BTreeMap::new();
        for (planned, stays) in self.0.planned().filter_map(|it| Some((it, it.stays()?))) {
            let count = counts.entry((planned.dtype(), stays)).or_default();
            *count = count.saturating_add(1);
        }
        for ((dtype, stays), count) in counts {
            write!(f, "\n{count} of {dtype} stay: {stays}")?;
        }
        Ok(())
    }
}

/// The whole plan: for each tensor its name, dtype, shape and place in the memory of its shard, and
/// the requests. Paths are text, with invalid UTF-8 replaced.
impl Serialize for LoadPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shards = self.index.shards().iter();
        let paths: Vec<_> = shards.clone().map(|shard| shard.path().to_string_lossy()).collect();
        let memory_of = |shard| self.memory.get(&shard).copied().unwrap_or(0);
        let memory: Vec<u64> = shards.map(|shard| memory_of(shard.id())).collect();
        let tensors: Vec<_> = self.planned().map(TensorPlace::of).collect();
        let mut plan = serializer.serialize_struct("LoadPlan", 5)?;
        plan.serialize_field("root", &self.index.root.to_string_lossy())?;
        plan.serialize_field("shards", &paths)?;
        plan.serialize_field("memory", &memory)?;
        plan.serialize_field("tensors", &tensors)?;
        plan.serialize_field("requests", &self.requests)?;
        plan.end()
    }
}

/// A tensor of a plan as it is serialised.
#[derive(Serialize)]
struct TensorPlace<'a> {
    name: &'a str,
    /// The type in memory.
    dtype: &'static str,
    /// The type in the file, if it is different.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_dtype: Option<&'static str>,
    /// Why it keeps its type in spite of a cast.
    #[serde(skip_serializing_if = "Option::is_none")]
    stays: Option<Stays>,
    shape: &'a [usize],
    shard: ShardId,
    memory_range: Range<u64>,
}

impl<'a> TensorPlace<'a> {
    fn of(planned: PlannedTensor<'a>) -> Self {
        Self {
            name: planned.name(),
            dtype: planned.dtype().name(),
            stored_dtype: planned.cast().map(|cast| cast.source().dtype().name()),
            stays: planned.stays(),
            shape: planned.shape(),
            shard: planned.stored().shard().id(),
            memory_range: planned.memory_range(),
        }
    }
}
