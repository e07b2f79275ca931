//! The rank of this process in a distributed job, from environment variables of its launcher.
//!
//! Each launcher sets a pair of variables, rank and size. A pair is complete if both are set and
//! not empty. [`rank_from_env`] takes the first complete pair in the order of [`Launcher::ALL`]; a
//! half-set pair yields to a complete one. A process without a launcher has no rank: a default of 0
//! would make every process load the same part.
//!
//! | launcher | rank | size | rank on the host | ranks on the host |
//! | --- | --- | --- | --- | --- |
//! | torchrun | `RANK` | `WORLD_SIZE` | `LOCAL_RANK` | `LOCAL_WORLD_SIZE` |
//! | Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` | `OMPI_COMM_WORLD_LOCAL_RANK` | `OMPI_COMM_WORLD_LOCAL_SIZE` |
//! | PALS (`mpiexec` of HPE Cray) | `PALS_RANKID` | `PMI_SIZE` or `PALS_SIZE` | `PALS_LOCAL_RANKID` or `PMI_LOCAL_RANK` | `PMI_LOCAL_SIZE` or `PALS_LOCAL_SIZE` |
//! | PMI (MPICH and Intel MPI with Hydra, `srun --mpi=pmi2`) | `PMI_RANK` | `PMI_SIZE` | `MPI_LOCALRANKID` or `PMI_LOCAL_RANK` | `MPI_LOCALNRANKS` or `PMI_LOCAL_SIZE` |
//! | MVAPICH2 | `MV2_COMM_WORLD_RANK` | `MV2_COMM_WORLD_SIZE` | `MV2_COMM_WORLD_LOCAL_RANK` | `MV2_COMM_WORLD_LOCAL_SIZE` |
//! | Flux | `FLUX_TASK_RANK` | `FLUX_JOB_SIZE` | `FLUX_TASK_LOCAL_ID` | not stated |
//! | Slurm | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS` | `SLURM_LOCALID` | from `SLURM_STEP_TASKS_PER_NODE` |
//! | PMIx | `PMIX_RANK` | not stated | not stated | not stated |
//!
//! Of two complete pairs the inner launcher's wins: `srun` may start one torchrun per node, whose
//! processes have their rank from torchrun. But operators of Kubernetes set `RANK` and `WORLD_SIZE`
//! of a pod, which may start `mpirun`. So if `LOCAL_RANK` is unset, `RANK` and `WORLD_SIZE` that
//! contradict another complete pair are an error. If the first launcher does not state the rank on
//! the host, another complete pair with the same rank and size gives it.
//!
//! Slurm sets `SLURM_PROCID` and `SLURM_NTASKS` also in the body of an `sbatch` script, which is a
//! single process. Only `srun` sets `SLURM_STEP_NUM_TASKS`; without it, Slurm's variables are
//! ignored. PMIx has no variable for the size: `PMIX_RANK` without a complete pair is an error.
//!
//! Some launchers, such as Ray and vLLM, pass the rank to workers as an argument: use
//! [`Rank::new`](crate::Rank::new).

// Applies to the modules below too.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod error;
mod launcher;
mod process_rank;
mod variables;

use std::env;
use std::ffi::OsString;

pub use error::LaunchError;
pub use launcher::Launcher;
pub use process_rank::ProcessRank;

pub use crate::rank::RankError;

/// Returns the rank of this process, or `None` if no launcher has set one.
///
/// Reads environment variables only. Arguments given by the user should take precedence.
///
/// ```
/// use modeldir::{Topology, launch};
///
/// let topology = match launch::rank_from_env()? {
///     Some(rank) => Topology::tensor_parallel(rank),
///     None => Topology::single(),
/// };
/// # Ok::<(), modeldir::Error>(())
/// ```
///
/// # Errors
///
/// As [`rank_from`].
pub fn rank_from_env() -> Result<Option<ProcessRank>, LaunchError> {
    rank_from(|name| env::var_os(name))
}

/// Returns the rank as [`rank_from_env`] does, with `look_up` in place of the environment.
///
/// ```
/// use modeldir::launch::{self, Launcher};
///
/// let job = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")];
/// let look_up = |name: &str| job.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
/// let rank = launch::rank_from(look_up)?.expect("Open MPI sets the rank");
/// assert_eq!((rank.rank().to_string().as_str(), rank.launcher()), ("1/4", Launcher::OpenMpi));
///
/// let error = launch::rank_from(|name| (name == "RANK").then(|| "1".into())).unwrap_err();
/// assert_eq!(error.to_string(), r#"RANK="1" is set and WORLD_SIZE is not; torchrun sets both"#);
/// # Ok::<(), modeldir::Error>(())
/// ```
///
/// # Errors
///
/// [`LaunchError::NotANumber`] if a variable of the launcher that decides is not a number,
/// [`LaunchError::Impossible`] if its numbers contradict each other,
/// [`LaunchError::Contradiction`] if `RANK` and `WORLD_SIZE` contradict another complete pair and
/// `LOCAL_RANK` is unset. If no pair is complete, [`LaunchError::HalfSet`] for the first that is
/// half-set, and [`LaunchError::NoSize`] for `PMIX_RANK`.
pub fn rank_from(
    look_up: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<ProcessRank>, LaunchError> {
    // An empty variable is an unset one.
    let look_up = |name: &str| look_up(name).filter(|value| !value.is_empty());
    let mut complete = Vec::new();
    let mut half_set = Ok(());
    for &launcher in Launcher::ALL {
        match variables::pair(launcher, &look_up) {
            Ok(Some(pair)) => complete.push(pair),
            Ok(None) => {}
            Err(error) => half_set = half_set.and(Err(error)),
        }
    }
    let Some((first, others)) = complete.split_first() else {
        return half_set.map(|()| None);
    };
    let mut numbers = first.numbers(&look_up)?;
    if first.launcher == Launcher::Torchrun && numbers.local_rank.is_none() {
        others.iter().try_for_each(|other| numbers.agree(first.launcher, other))?;
    }
    // Numbers on the host only complete those of the launcher that decides: an odd one is ignored.
    let others = others.iter().filter_map(|other| other.numbers(&look_up).ok());
    others.for_each(|other| numbers.complete(&other));
    ProcessRank::new(first.launcher, numbers).map(Some)
}

#[cfg(test)]
mod tests;
