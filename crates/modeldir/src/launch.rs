//! The rank of this process in a distributed job, from environment variables of its launcher.
//!
//! [`rank_from_env`] checks the launchers in the order of [`Launcher::ALL`]; the first whose rank
//! and size are both set wins. A process without a launcher has no rank: a default of 0 would make
//! every process load the same part.
//!
//! | launcher | rank | size | rank on the host | ranks on the host |
//! | --- | --- | --- | --- | --- |
//! | torchrun | `RANK` | `WORLD_SIZE` | `LOCAL_RANK` | `LOCAL_WORLD_SIZE` |
//! | Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` | `OMPI_COMM_WORLD_LOCAL_RANK` | `OMPI_COMM_WORLD_LOCAL_SIZE` |
//! | PMI (MPICH and Intel MPI with Hydra, `srun --mpi=pmi2`) | `PMI_RANK` | `PMI_SIZE` | `MPI_LOCALRANKID` | `MPI_LOCALNRANKS` |
//! | MVAPICH2 | `MV2_COMM_WORLD_RANK` | `MV2_COMM_WORLD_SIZE` | `MV2_COMM_WORLD_LOCAL_RANK` | `MV2_COMM_WORLD_LOCAL_SIZE` |
//! | Slurm | `SLURM_PROCID` | `SLURM_STEP_NUM_TASKS` | `SLURM_LOCALID` | from `SLURM_STEP_TASKS_PER_NODE` |
//!
//! Slurm sets `SLURM_PROCID` and `SLURM_NTASKS` also in the body of an `sbatch` script, which is a
//! single process. Only `srun` sets `SLURM_STEP_NUM_TASKS`; without it, Slurm's variables are
//! ignored.
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
/// Launchers are checked in the order of [`Launcher::ALL`], up to the first that has set both rank
/// and size. [`LaunchError::HalfSet`] if an earlier launcher has set only one of the two,
/// [`LaunchError::NotANumber`] if a variable of that launcher is not a number,
/// [`LaunchError::Impossible`] if its numbers contradict each other.
pub fn rank_from(
    look_up: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<ProcessRank>, LaunchError> {
    for launcher in Launcher::ALL {
        if let Some(numbers) = variables::numbers(launcher, &look_up)? {
            return ProcessRank::new(launcher, numbers).map(Some);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
