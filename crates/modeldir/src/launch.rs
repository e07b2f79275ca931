//! The rank of this process in a distributed job, from the environment set by its launcher.
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
//! [`Rank::new`] takes ranks passed as arguments to workers, as by Ray and vLLM.

mod error;
mod launcher;

use std::env;
use std::ffi::OsString;
use std::fmt;

pub use error::LaunchError;
pub use launcher::Launcher;
use launcher::{Number, Numbers};

/// Returns the rank of this process, or `None` if no launcher has set one.
///
/// Reads environment variables only. Arguments given by the user should take precedence.
///
/// ```
/// use modeldir::launch;
///
/// match launch::rank_from_env()? {
///     Some(rank) => println!("rank {rank}"),
///     None => println!("a single process"),
/// }
/// # Ok::<(), modeldir::Error>(())
/// ```
///
/// # Errors
///
/// As [`rank_from`].
pub fn rank_from_env() -> Result<Option<Rank>, LaunchError> {
    rank_from(|name| env::var_os(name))
}

/// [`rank_from_env`] with the environment as a function from name to value.
///
/// ```
/// use modeldir::launch::{self, Launcher};
///
/// let job = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")];
/// let look_up = |name: &str| job.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
/// let rank = launch::rank_from(look_up)?.expect("Open MPI sets the rank");
/// assert_eq!((rank.rank(), rank.size(), rank.launcher()), (1, 4, Some(Launcher::OpenMpi)));
///
/// let error = launch::rank_from(|name| (name == "RANK").then(|| "1".into())).unwrap_err();
/// assert_eq!(error.to_string(), r#"RANK="1" is set and WORLD_SIZE is not; torchrun sets both"#);
/// # Ok::<(), modeldir::Error>(())
/// ```
///
/// # Errors
///
/// [`LaunchError::HalfSet`] if a launcher before the first complete one has set only one of rank
/// and size; [`LaunchError::NotANumber`] if a variable of the first complete one is not a number;
/// [`LaunchError::Impossible`] if its numbers contradict each other.
pub fn rank_from(look_up: impl Fn(&str) -> Option<OsString>) -> Result<Option<Rank>, LaunchError> {
    for launcher in Launcher::ALL {
        if let Some(numbers) = launcher.numbers(&look_up)? {
            return Rank::checked(Some(launcher), numbers).map(Some);
        }
    }
    Ok(None)
}

/// The rank of one process of a distributed job, and the number of ranks.
///
/// The rank is less than the size. The rank on the host is less than the number of ranks there, if
/// the launcher states it, else than the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rank {
    rank: usize,
    size: usize,
    local_rank: Option<usize>,
    local_size: Option<usize>,
    launcher: Option<Launcher>,
}

impl Rank {
    /// Rank `rank` of `size`, without a launcher.
    ///
    /// ```
    /// use modeldir::launch::Rank;
    ///
    /// assert_eq!(Rank::new(3, 4)?.to_string(), "3 of 4");
    /// assert!(Rank::new(4, 4).is_err());
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LaunchError::Impossible`] if `rank` is not less than `size`.
    pub fn new(rank: usize, size: usize) -> Result<Self, LaunchError> {
        let number = |name, value| Number { name, value };
        let (rank, size) = (number("rank", rank), number("size", size));
        Self::checked(None, Numbers { rank, size, local_rank: None, local_size: None })
    }

    /// The rank, from 0.
    #[must_use]
    pub const fn rank(self) -> usize {
        self.rank
    }

    /// The number of ranks.
    #[must_use]
    pub const fn size(self) -> usize {
        self.size
    }

    /// The rank among those on the same host, from 0, if the launcher states it.
    #[must_use]
    pub const fn local_rank(self) -> Option<usize> {
        self.local_rank
    }

    /// The number of ranks on the same host, if the launcher states it.
    #[must_use]
    pub const fn local_size(self) -> Option<usize> {
        self.local_size
    }

    /// The launcher that set the rank; `None` for [`Rank::new`].
    #[must_use]
    pub const fn launcher(self) -> Option<Launcher> {
        self.launcher
    }

    /// Builds a rank from numbers of a launcher, checked against each other.
    fn checked(launcher: Option<Launcher>, numbers: Numbers) -> Result<Self, LaunchError> {
        let Numbers { rank, size, local_rank, local_size } = numbers;
        check_less(rank, size)?;
        if let Some(local_rank) = local_rank {
            check_less(local_rank, local_size.unwrap_or(size))?;
        }
        if let Some(local_size) = local_size.filter(|on_host| on_host.value > size.value) {
            return Err(impossible(local_size, size, "more ranks on one host than in the job"));
        }
        let [local_rank, local_size] = [local_rank, local_size].map(|n| n.map(|n| n.value));
        Ok(Self { rank: rank.value, size: size.value, local_rank, local_size, launcher })
    }
}

/// Writes `1 of 4`.
impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.rank, self.size)
    }
}

/// Refuses a rank that is not less than the size; so a size of 0 is refused too.
fn check_less(rank: Number, size: Number) -> Result<(), LaunchError> {
    if rank.value < size.value {
        return Ok(());
    }
    Err(impossible(rank, size, "a rank is from 0 to one less than the size"))
}

fn impossible(number: Number, other: Number, reason: &'static str) -> LaunchError {
    let (numbers, names) = ([number.value, other.value], [number.name, other.name]);
    LaunchError::Impossible { names, numbers, reason }
}

#[cfg(test)]
mod tests;
