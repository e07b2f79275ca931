//! The launchers of distributed jobs, and their environment variables.

use std::ffi::OsString;
use std::fmt;

use super::error::LaunchError;

/// A program that starts the processes of a distributed job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Launcher {
    /// torchrun, and programs that set the same variables: accelerate, Ray Train, Kubeflow.
    Torchrun,
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// A process manager with PMI: Hydra of MPICH and Intel MPI, `srun --mpi=pmi2`.
    Pmi,
    /// MVAPICH2.
    Mvapich2,
    /// `srun` of Slurm.
    Slurm,
}

impl Launcher {
    /// Every launcher, in the order of precedence.
    pub const ALL: [Self; 5] =
        [Self::Torchrun, Self::OpenMpi, Self::Pmi, Self::Mvapich2, Self::Slurm];

    /// The numbers set by the launcher, or `None` if it did not start this process.
    ///
    /// # Errors
    ///
    /// [`LaunchError::HalfSet`] if only one of rank and size is set; [`LaunchError::NotANumber`] if
    /// one is not a number.
    pub(super) fn numbers(
        self,
        look_up: &impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Numbers>, LaunchError> {
        let read = |name| look_up(name).map(|value| Variable { name, value });
        let [rank, size, local_rank, local_size] = self.variables();
        let (rank, size) = match (read(rank), read(size)) {
            (Some(rank), Some(size)) => (rank.number()?, size.number()?),
            (None, None) => return Ok(None),
            // A batch script has a rank too, but is a single process whatever the size of the job.
            (Some(_), None) if self == Self::Slurm => return Ok(None),
            (Some(set), None) => return Err(set.without(size, self)),
            (None, Some(set)) => return Err(set.without(rank, self)),
        };
        let local_rank = read(local_rank).map(|local| local.number()).transpose()?;
        let local_size = match read(local_size) {
            Some(tasks) if self == Self::Slurm => {
                let node = look_up("SLURM_NODEID");
                tasks_on_host(
                    &tasks.value.to_string_lossy(),
                    node.as_ref().and_then(|n| n.to_str()),
                )
                .map(|value| Number { name: tasks.name, value })
            }
            local => local.map(|local| local.number()).transpose()?,
        };
        Ok(Some(Numbers { rank, size, local_rank, local_size }))
    }

    /// The variables of the rank, the size, the rank on the host and the number of ranks there.
    const fn variables(self) -> [&'static str; 4] {
        match self {
            Self::Torchrun => ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"],
            Self::OpenMpi => [
                "OMPI_COMM_WORLD_RANK",
                "OMPI_COMM_WORLD_SIZE",
                "OMPI_COMM_WORLD_LOCAL_RANK",
                "OMPI_COMM_WORLD_LOCAL_SIZE",
            ],
            Self::Pmi => ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"],
            Self::Mvapich2 => [
                "MV2_COMM_WORLD_RANK",
                "MV2_COMM_WORLD_SIZE",
                "MV2_COMM_WORLD_LOCAL_RANK",
                "MV2_COMM_WORLD_LOCAL_SIZE",
            ],
            Self::Slurm => [
                "SLURM_PROCID",
                "SLURM_STEP_NUM_TASKS",
                "SLURM_LOCALID",
                "SLURM_STEP_TASKS_PER_NODE",
            ],
        }
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Torchrun => "torchrun",
            Self::OpenMpi => "Open MPI",
            Self::Pmi => "PMI",
            Self::Mvapich2 => "MVAPICH2",
            Self::Slurm => "Slurm",
        })
    }
}

/// The numbers of a launcher; they may contradict each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) rank: Number,
    pub(super) size: Number,
    pub(super) local_rank: Option<Number>,
    pub(super) local_size: Option<Number>,
}

/// A number and the name of its source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) name: &'static str,
    pub(super) value: usize,
}

/// A variable that is set.
struct Variable {
    name: &'static str,
    value: OsString,
}

impl Variable {
    /// The value, which must consist of decimal digits.
    fn number(&self) -> Result<Number, LaunchError> {
        let is_plain = |text: &&str| text.bytes().all(|b| b.is_ascii_digit());
        let number = self.value.to_str().filter(is_plain).and_then(|text| text.parse().ok());
        match number {
            Some(value) => Ok(Number { name: self.name, value }),
            None => Err(LaunchError::NotANumber { variable: self.name, value: self.text() }),
        }
    }

    /// The error for a variable that is set without its counterpart.
    fn without(&self, unset: &'static str, launcher: Launcher) -> LaunchError {
        LaunchError::HalfSet { variable: self.name, value: self.text(), unset, launcher }
    }

    fn text(&self) -> Box<str> {
        self.value.to_string_lossy().into()
    }
}

/// The number of tasks on host `node`, from Slurm's list for all hosts: `4`, `4(x2),3`.
///
/// `None` if the list has another form or is too short.
fn tasks_on_host(list: &str, node: Option<&str>) -> Option<usize> {
    let mut runs = Vec::new();
    for run in list.split(',') {
        let (tasks, hosts) = match run.split_once("(x") {
            Some((tasks, hosts)) => (tasks, hosts.strip_suffix(')')?.parse().ok()?),
            None => (run, 1_usize),
        };
        runs.push((tasks.parse().ok()?, hosts));
    }
    if let [(tasks, _)] = *runs {
        return Some(tasks);
    }
    let mut before: usize = node?.parse().ok()?;
    for (tasks, hosts) in runs {
        match before.checked_sub(hosts) {
            Some(rest) => before = rest,
            None => return Some(tasks),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::tasks_on_host;

    #[test]
    fn slurm_lists_the_tasks_of_all_hosts() {
        for (list, node, tasks) in [
            ("4", None, Some(4)),
            ("4(x2)", None, Some(4)),
            ("4(x2),3", Some("0"), Some(4)),
            ("4(x2),3", Some("1"), Some(4)),
            ("4(x2),3", Some("2"), Some(3)),
            ("4(x2),3", Some("3"), None),
            ("4(x2),3", None, None),
            ("4(x2),3", Some("two"), None),
            ("4(x2", None, None),
            ("four", None, None),
            ("", Some("0"), None),
        ] {
            assert_eq!(tasks_on_host(list, node), tasks, "{list} {node:?}");
        }
    }
}
