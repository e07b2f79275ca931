//! The launchers of distributed jobs, and their environment variables.

use std::fmt;

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

    /// The variables for rank, size, rank on the host and number of ranks on the host, in this
    /// order.
    pub(super) const fn variables(self) -> [&'static str; 4] {
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
