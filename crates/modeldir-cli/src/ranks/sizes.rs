//! Numbers of tensors, bytes and reads: of one rank, and of all.

use modeldir::ModelDir;
use serde_json::{Value, json};

use super::plans::RankPlan;

/// What a rank holds and reads, in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    /// Number of tensors.
    pub(super) tensors: u64,
    /// Bytes held.
    pub(super) selected: u64,
    /// Bytes that other ranks hold too.
    pub(super) replicated: u64,
    /// Bytes read, with those between rows.
    pub(super) read: u64,
    /// Number of reads.
    pub(super) reads: u64,
}

impl Sizes {
    /// Those of one rank.
    pub(super) fn of(rank: &RankPlan) -> Self {
        let plan = rank.plan();
        Self {
            tensors: plan.len() as u64,
            selected: plan.bytes_selected(),
            replicated: rank.bytes_replicated,
            read: plan.bytes_read(),
            reads: plan.requests().len() as u64,
        }
    }

    /// The sums over all ranks.
    pub(super) fn total(ranks: &[RankPlan]) -> Self {
        ranks.iter().map(Self::of).fold(Self::default(), |sum, rank| Self {
            tensors: sum.tensors + rank.tensors,
            selected: sum.selected + rank.selected,
            replicated: sum.replicated + rank.replicated,
            read: sum.read + rank.read,
            reads: sum.reads + rank.reads,
        })
    }

    /// The bytes held as a share of all bytes of the model; zero for an empty model.
    pub(super) fn share(&self, model: &ModelDir) -> f64 {
        self.selected as f64 / model.byte_len().max(1) as f64
    }

    /// As JSON.
    pub(super) fn json(&self, model: &ModelDir) -> Value {
        json!({
            "tensors": self.tensors,
            "bytes_selected": self.selected,
            "share": self.share(model),
            "bytes_replicated": self.replicated,
            "bytes_read": self.read,
            "reads": self.reads,
        })
    }
}
