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
    /// `mpiexec` of HPE Cray systems.
    Pals,
    /// A process manager with PMI: Hydra of MPICH and Intel MPI, `srun --mpi=pmi2`.
    Pmi,
    /// MVAPICH2.
    Mvapich2,
    /// `flux run` of Flux.
    Flux,
    /// `srun` of Slurm.
    Slurm,
    /// A process manager with PMIx, such as `prterun`; it states no size.
    Pmix,
}

/// The variables of a launcher; of a list, the first that is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variables {
    pub(super) rank: &'static str,
    /// Empty if the launcher states no size.
    pub(super) size: &'static [&'static str],
    pub(super) local_rank: &'static [&'static str],
    pub(super) local_size: &'static [&'static str],
}

impl Launcher {
    /// Every launcher, in the order of precedence.
    pub const ALL: &'static [Self] = &[
        Self::Torchrun,
        Self::OpenMpi,
        Self::Pals,
        Self::Pmi,
        Self::Mvapich2,
        Self::Flux,
        Self::Slurm,
        Self::Pmix,
    ];

    /// The variables of this launcher.
    pub(super) const fn variables(self) -> Variables {
        match self {
            Self::Torchrun => Variables {
                rank: "RANK",
                size: &["WORLD_SIZE"],
                local_rank: &["LOCAL_RANK"],
                local_size: &["LOCAL_WORLD_SIZE"],
            },
            Self::OpenMpi => Variables {
                rank: "OMPI_COMM_WORLD_RANK",
                size: &["OMPI_COMM_WORLD_SIZE"],
                local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
                local_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
            },
            Self::Pals => PALS,
            Self::Pmi => Variables {
                rank: "PMI_RANK",
                size: &["PMI_SIZE"],
                local_rank: &["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
                local_size: &["MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"],
            },
            Self::Mvapich2 => Variables {
                rank: "MV2_COMM_WORLD_RANK",
                size: &["MV2_COMM_WORLD_SIZE"],
                local_rank: &["MV2_COMM_WORLD_LOCAL_RANK"],
                local_size: &["MV2_COMM_WORLD_LOCAL_SIZE"],
            },
            Self::Flux => FLUX,
            Self::Slurm => SLURM,
            Self::Pmix => {
                Variables { rank: "PMIX_RANK", size: &[], local_rank: &[], local_size: &[] }
            }
        }
    }
}

/// PALS states the size in the variable of PMI, which it sets too.
const PALS: Variables = Variables {
    rank: "PALS_RANKID",
    size: &["PMI_SIZE", "PALS_SIZE"],
    local_rank: &["PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"],
    local_size: &["PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE"],
};

const FLUX: Variables = Variables {
    rank: "FLUX_TASK_RANK",
    size: &["FLUX_JOB_SIZE"],
    local_rank: &["FLUX_TASK_LOCAL_ID"],
    local_size: &[],
};

const SLURM: Variables = Variables {
    rank: "SLURM_PROCID",
    size: &["SLURM_STEP_NUM_TASKS"],
    local_rank: &["SLURM_LOCALID"],
    local_size: &["SLURM_STEP_TASKS_PER_NODE"],
};

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Torchrun => "torchrun",
            Self::OpenMpi => "Open MPI",
            Self::Pals => "PALS",
            Self::Pmi => "PMI",
            Self::Mvapich2 => "MVAPICH2",
            Self::Flux => "Flux",
            Self::Slurm => "Slurm",
            Self::Pmix => "PMIx",
        })
    }
}
