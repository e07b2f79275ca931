//! The load of one rank of a job, as a line of text or JSON.

use std::fmt;
use std::path::Path;

use modeldir::launch::{Launcher, ProcessRank};
use modeldir::{LoadPlan, Rank, TensorStore};
use serde_json::{Value, json};
use tensorfile::PathText;

use crate::digests::{digest_of, digests};
use crate::output::{bytes, counted, path_json, rate, time};
use crate::ranks::WithoutRule;

/// A rank, its plan, its loaded tensors, and the place where it saved them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankLoad<'a> {
    /// The rank.
    pub(super) rank: Rank,
    /// The rank from the launcher, unless --rank sets it.
    pub(super) launched: Option<ProcessRank>,
    /// The tensors to load.
    pub(super) plan: &'a LoadPlan,
    /// The loaded tensors.
    pub(super) store: &'a TensorStore,
    /// The place where they were saved.
    pub(super) saved: Option<&'a Path>,
}

impl RankLoad<'_> {
    /// All but the tensors, as JSON. Unless paths are long, it has fewer than the 4096 bytes that
    /// launchers pass on in one piece.
    pub(super) fn json(&self) -> Value {
        let (rank, stats) = (self.rank, self.store.stats());
        json!({
            "rank": rank.rank(),
            "size": rank.size(),
            "launcher": self.launched.map(|process| process.launcher().to_string()),
            "local_rank": self.launched.and_then(ProcessRank::local_rank),
            "local_size": self.launched.and_then(ProcessRank::local_size),
            "tensors": self.store.len(),
            "bytes_selected": self.store.byte_len(),
            "bytes_planned": self.plan.bytes_read(),
            "bytes_read": stats.bytes_read,
            "reads": stats.requests,
            "seconds": stats.elapsed.as_secs_f64(),
            "without_rule": WithoutRule::of(self.plan).map(|found| found.json()),
            "digest": self.digest(),
            "saved": self.saved.map(path_json),
        })
    }

    /// The SHA-256 of the lines that `modeldir digest` prints for the same parts.
    fn digest(&self) -> String {
        digest_of(&digests(self.store, |_| ()))
    }
}

impl fmt::Display for RankLoad<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, stats) = (self.rank, self.store.stats());
        let launcher = self.launched.map(ProcessRank::launcher);
        let launcher = launcher.as_ref().map_or("--rank".to_owned(), Launcher::to_string);
        let (tensors, size) = (counted(self.store.len(), "tensor"), bytes(self.store.byte_len()));
        let (took, rate) = (time(stats.elapsed), rate(stats.bytes_read, stats.elapsed));
        let (read, planned) = (stats.bytes_read, self.plan.bytes_read());
        let (number, ranks) = (rank.rank(), rank.size());
        write!(f, "rank {number} of {ranks} ({launcher}): {tensors}, {size} in {took}, {rate}, ")?;
        write!(f, "{read} of {planned} planned bytes read, digest {}", self.digest())?;
        self.saved.map_or(Ok(()), |folder| write!(f, ", saved in {}", PathText(folder)))
    }
}
