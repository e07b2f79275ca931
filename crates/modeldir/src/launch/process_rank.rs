//! `ProcessRank`: the rank of this process, from its launcher.

use super::error::LaunchError;
use super::launcher::Launcher;
use super::variables::{Number, Numbers};
use crate::rank::Rank;

/// The rank of this process in its job and on its host, as set by its launcher.
///
/// Functions that take `impl Into<Rank>` accept it. The rank on the host is less than the number of
/// ranks on the host; if the launcher does not state that number, less than the size of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessRank {
    rank: Rank,
    local_rank: Option<usize>,
    local_size: Option<usize>,
    launcher: Launcher,
}

impl ProcessRank {
    /// Builds a rank from the numbers of a launcher; fails if they contradict each other.
    pub(super) fn new(launcher: Launcher, numbers: Numbers) -> Result<Self, LaunchError> {
        let Numbers { rank, size, local_rank, local_size } = numbers;
        let in_job = within(rank, size)?;
        if let Some(local_rank) = local_rank {
            within(local_rank, local_size.unwrap_or(size))?;
        }
        if let Some(local_size) = local_size.filter(|on_host| on_host.value > size.value) {
            return Err(impossible(local_size, size, "more ranks on one host than in the job"));
        }
        let [local_rank, local_size] = [local_rank, local_size].map(|n| n.map(|n| n.value));
        Ok(Self { rank: in_job, local_rank, local_size, launcher })
    }

    /// The rank in the job.
    #[must_use]
    pub const fn rank(self) -> Rank {
        self.rank
    }

    /// The rank among the ranks on the same host, from 0, if the launcher states it.
    #[must_use]
    pub const fn local_rank(self) -> Option<usize> {
        self.local_rank
    }

    /// The number of ranks on the same host, if the launcher states it.
    #[must_use]
    pub const fn local_size(self) -> Option<usize> {
        self.local_size
    }

    /// The launcher that set the rank.
    #[must_use]
    pub const fn launcher(self) -> Launcher {
        self.launcher
    }
}

impl From<ProcessRank> for Rank {
    fn from(process: ProcessRank) -> Self {
        process.rank
    }
}

/// Builds a rank from two numbers; an error shows their names.
fn within(rank: Number, size: Number) -> Result<Rank, LaunchError> {
    let reason = "a rank is from 0 to one less than the size";
    Rank::new(rank.value, size.value).map_err(|_| impossible(rank, size, reason))
}

fn impossible(number: Number, other: Number, reason: &'static str) -> LaunchError {
    let (numbers, names) = ([number.value, other.value], [number.name, other.name]);
    LaunchError::Impossible { names, numbers, reason }
}
