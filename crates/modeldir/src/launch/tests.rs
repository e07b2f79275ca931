//! Tests of every launcher and of look-alikes.
#![expect(clippy::indexing_slicing, reason = "of small lists")]

use std::ffi::OsString;

use super::LaunchError;
use super::{Launcher, ProcessRank, rank_from};

/// The rank in an environment written as `NAME=value NAME=value`.
fn rank(environment: &str) -> Result<Option<ProcessRank>, LaunchError> {
    let pairs: Vec<_> =
        environment.split_whitespace().filter_map(|pair| pair.split_once('=')).collect();
    rank_from(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
}

#[test]
fn every_launcher_is_understood() {
    for (environment, launcher, rank_and_size, local) in [
        (
            "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 GROUP_RANK=1 GROUP_WORLD_SIZE=2 \
             ROLE_RANK=5 ROLE_WORLD_SIZE=8 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500",
            Launcher::Torchrun,
            (5, 8),
            (Some(1), Some(4)),
        ),
        ("RANK=0 WORLD_SIZE=1", Launcher::Torchrun, (0, 1), (None, None)),
        (
            "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=3 \
             OMPI_COMM_WORLD_LOCAL_SIZE=4 OMPI_COMM_WORLD_NODE_RANK=3 OMPI_UNIVERSE_SIZE=2 \
             PMIX_RANK=3 PMIX_NAMESPACE=1",
            Launcher::OpenMpi,
            (3, 4),
            (Some(3), Some(4)),
        ),
        (
            "PMI_RANK=2 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2",
            Launcher::Pmi,
            (2, 4),
            (Some(0), Some(2)),
        ),
        (
            "MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_LOCAL_RANK=0 \
             MV2_COMM_WORLD_LOCAL_SIZE=1",
            Launcher::Mvapich2,
            (1, 2),
            (Some(0), Some(1)),
        ),
        (
            "SLURM_PROCID=6 SLURM_LOCALID=2 SLURM_NTASKS=7 SLURM_NPROCS=7 SLURM_NNODES=2 \
             SLURM_NODEID=1 SLURM_STEP_NUM_TASKS=7 SLURM_STEP_TASKS_PER_NODE=4,3 SLURM_JOB_ID=9",
            Launcher::Slurm,
            (6, 7),
            (Some(2), Some(3)),
        ),
    ] {
        let found = rank(environment).unwrap().unwrap();
        assert_eq!((found.rank().rank(), found.rank().size()), rank_and_size, "{environment}");
        assert_eq!((found.local_rank(), found.local_size()), local, "{environment}");
        assert_eq!(found.launcher(), launcher, "{environment}");
    }
}

#[test]
fn the_launchers_of_cray_and_flux_are_understood() {
    for (environment, launcher, rank_and_size, local) in [
        (
            "PALS_RANKID=2 PALS_NODEID=0 PALS_LOCAL_RANKID=2 PALS_APID=7 PALS_DEPTH=1 PMI_RANK=2 \
             PMI_SIZE=8 PMI_LOCAL_RANK=2 PMI_LOCAL_SIZE=4",
            Launcher::Pals,
            (2, 8),
            (Some(2), Some(4)),
        ),
        (
            "PALS_RANKID=1 PALS_SIZE=4 PALS_LOCAL_RANKID=0 PALS_LOCAL_SIZE=2",
            Launcher::Pals,
            (1, 4),
            (Some(0), Some(2)),
        ),
        (
            "PMI_RANK=2 PMI_SIZE=4 PMI_LOCAL_RANK=1 PMI_LOCAL_SIZE=2",
            Launcher::Pmi,
            (2, 4),
            (Some(1), Some(2)),
        ),
        (
            "FLUX_TASK_RANK=3 FLUX_JOB_SIZE=4 FLUX_TASK_LOCAL_ID=1 FLUX_JOB_NNODES=2 FLUX_JOB_ID=f",
            Launcher::Flux,
            (3, 4),
            (Some(1), None),
        ),
    ] {
        let found = rank(environment).unwrap().unwrap();
        assert_eq!((found.rank().rank(), found.rank().size()), rank_and_size, "{environment}");
        assert_eq!((found.local_rank(), found.local_size()), local, "{environment}");
        assert_eq!(found.launcher(), launcher, "{environment}");
    }
}

#[test]
fn the_first_complete_pair_decides() {
    let pairs = [
        ("RANK=0 WORLD_SIZE=9 LOCAL_RANK=0", Launcher::Torchrun),
        ("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=9", Launcher::OpenMpi),
        ("PALS_RANKID=2 PALS_SIZE=9", Launcher::Pals),
        ("PMI_RANK=3 PMI_SIZE=9", Launcher::Pmi),
        ("MV2_COMM_WORLD_RANK=4 MV2_COMM_WORLD_SIZE=9", Launcher::Mvapich2),
        ("FLUX_TASK_RANK=5 FLUX_JOB_SIZE=9", Launcher::Flux),
        ("SLURM_PROCID=6 SLURM_STEP_NUM_TASKS=9", Launcher::Slurm),
    ];
    for (number, (_, launcher)) in pairs.iter().enumerate() {
        let last_first: Vec<_> = pairs[number..].iter().rev().map(|(pair, _)| *pair).collect();
        let found = rank(&last_first.join(" ")).unwrap().unwrap();
        assert_eq!((found.rank().rank(), found.launcher()), (number, *launcher));
    }
    // Launchers after the first complete one are not read.
    let found = rank("RANK=1 WORLD_SIZE=2 PMI_RANK=7 SLURM_STEP_NUM_TASKS=x").unwrap().unwrap();
    assert_eq!((found.rank().rank(), found.rank().size()), (1, 2));
}

#[test]
fn a_process_that_no_launcher_started_has_no_rank() {
    for environment in [
        "",
        "HOME=/ PATH=/bin MASTER_ADDR=localhost MASTER_PORT=29500",
        "LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 GROUP_RANK=0",
        "OMPI_UNIVERSE_SIZE=2 PMIX_NAMESPACE=1",
        "RANK= WORLD_SIZE= PMI_RANK= SLURM_PROCID= PMIX_RANK=",
        "JOB_COMPLETION_INDEX=3",
        // The body of a script under `sbatch -n 4`: a single process, not rank 0 of four.
        "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_NPROCS=4 SLURM_LOCALID=0 SLURM_NODEID=0 \
         SLURM_JOB_ID=7 SLURM_TASKS_PER_NODE=4",
        // A shell under salloc -n 4.
        "SLURM_NTASKS=4 SLURM_NPROCS=4 SLURM_JOB_ID=7",
    ] {
        assert_eq!(rank(environment).unwrap(), None, "{environment}");
    }
}

#[test]
fn the_size_under_srun_is_that_of_the_step() {
    let found = rank("SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=2").unwrap().unwrap();
    assert_eq!((found.rank().rank(), found.rank().size()), (1, 2));
    // srun --mpi=pmi2 sets both kinds.
    let both = "PMI_RANK=1 PMI_SIZE=2 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1";
    let found = rank(both).unwrap().unwrap();
    assert_eq!((found.launcher(), found.local_rank()), (Launcher::Pmi, Some(1)));
}

#[test]
fn a_half_set_pair_yields_to_a_complete_one() {
    for half in
        ["RANK=7", "WORLD_SIZE=4", "RANK= WORLD_SIZE=4", "RANK=x", "PMI_SIZE=9", "PMIX_RANK=5"]
    {
        let found = rank(&format!("{half} OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2"));
        let found = found.unwrap().unwrap();
        assert_eq!((found.rank().rank(), found.rank().size()), (1, 2), "{half}");
        assert_eq!(found.launcher(), Launcher::OpenMpi, "{half}");
    }
    let found = rank("RANK=7 PMI_RANK=1 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2").unwrap().unwrap();
    assert_eq!((found.rank().rank(), found.launcher()), (1, Launcher::Slurm));
}

#[test]
fn numbers_on_the_host_are_taken_from_a_launcher_of_the_same_rank_and_size() {
    let slurm = "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=2";
    for (pair, local) in [
        ("RANK=1 WORLD_SIZE=4", (Some(1), Some(2))),
        ("PMI_RANK=1 PMI_SIZE=4", (Some(1), Some(2))),
        ("PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=0", (Some(0), None)),
        // Another job than that of the step.
        ("PMI_RANK=1 PMI_SIZE=2", (None, None)),
    ] {
        let found = rank(&format!("{pair} {slurm}")).unwrap().unwrap();
        assert_eq!((found.local_rank(), found.local_size()), local, "{pair}");
    }
}

#[test]
fn rejects_a_pair_of_torchrun_that_contradicts_another_unless_there_is_a_local_rank() {
    let open_mpi = "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4";
    let slurm = "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1";
    let pod = "RANK=0 WORLD_SIZE=1 MASTER_ADDR=pod-0";
    for (other, launcher, shown) in [
        (
            open_mpi,
            Launcher::OpenMpi,
            "OMPI_COMM_WORLD_RANK=3 and OMPI_COMM_WORLD_SIZE=4 of Open MPI",
        ),
        (slurm, Launcher::Slurm, "SLURM_PROCID=1 and SLURM_STEP_NUM_TASKS=2 of Slurm"),
    ] {
        let error = rank(&format!("{pod} {other}")).unwrap_err();
        let launchers = [Launcher::Torchrun, launcher];
        assert!(
            matches!(error, LaunchError::Contradiction { launchers: found, numbers: [0, 1], .. } if found == launchers),
            "{error:?}"
        );
        let message = format!("RANK=0 and WORLD_SIZE=1 of torchrun contradict {shown}: ");
        assert!(error.to_string().starts_with(&message), "{error}");
    }
    // srun starts one torchrun per node, or one for each process.
    for local in ["LOCAL_RANK=1", "LOCAL_RANK=1 LOCAL_WORLD_SIZE=2"] {
        let step = "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1";
        let found = rank(&format!("RANK=1 WORLD_SIZE=2 {local} {step}")).unwrap().unwrap();
        assert_eq!((found.rank().rank(), found.rank().size()), (1, 2));
        assert_eq!((found.launcher(), found.local_rank()), (Launcher::Torchrun, Some(1)));
    }
    let empty = rank(&format!("{pod} LOCAL_RANK= {open_mpi}")).unwrap_err();
    assert!(matches!(empty, LaunchError::Contradiction { .. }), "{empty:?}");
}

#[test]
fn rejects_a_rank_of_pmix_without_a_size() {
    let error = rank("PMIX_RANK=1 PMIX_NAMESPACE=x OMPI_UNIVERSE_SIZE=2").unwrap_err();
    assert!(matches!(error, LaunchError::NoSize { variable: "PMIX_RANK", .. }), "{error:?}");
    let message = r#"PMIX_RANK="1" is set, and PMIx states no size: give rank and size"#;
    assert_eq!(error.to_string(), message);
}

#[test]
fn rejects_a_half_set_pair() {
    for (environment, message) in [
        ("RANK=3", r#"RANK="3" is set and WORLD_SIZE is not; torchrun sets both"#),
        ("WORLD_SIZE=4", r#"WORLD_SIZE="4" is set and RANK is not; torchrun sets both"#),
        (
            "OMPI_COMM_WORLD_SIZE=4",
            r#"OMPI_COMM_WORLD_SIZE="4" is set and OMPI_COMM_WORLD_RANK is not; Open MPI sets both"#,
        ),
        ("PMI_RANK=x", r#"PMI_RANK="x" is set and PMI_SIZE is not; PMI sets both"#),
        (
            "MV2_COMM_WORLD_RANK=0",
            r#"MV2_COMM_WORLD_RANK="0" is set and MV2_COMM_WORLD_SIZE is not; MVAPICH2 sets both"#,
        ),
        (
            "SLURM_STEP_NUM_TASKS=4",
            r#"SLURM_STEP_NUM_TASKS="4" is set and SLURM_PROCID is not; Slurm sets both"#,
        ),
        ("RANK= WORLD_SIZE=4", r#"WORLD_SIZE="4" is set and RANK is not; torchrun sets both"#),
        // The first of several.
        ("PMI_RANK=1 RANK=1", r#"RANK="1" is set and WORLD_SIZE is not; torchrun sets both"#),
        ("PALS_RANKID=1", r#"PALS_RANKID="1" is set and PMI_SIZE is not; PALS sets both"#),
        (
            "FLUX_JOB_SIZE=4",
            r#"FLUX_JOB_SIZE="4" is set and FLUX_TASK_RANK is not; Flux sets both"#,
        ),
    ] {
        let error = rank(environment).unwrap_err();
        assert!(matches!(error, LaunchError::HalfSet { .. }), "{error:?}");
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn rejects_what_is_no_number() {
    for (environment, message) in [
        ("RANK=one WORLD_SIZE=4", r#"RANK="one": not a whole number"#),
        ("RANK=0 WORLD_SIZE=4 PMI_RANK=0 PMI_SIZE=four", r#"PMI_SIZE="four": not a whole number"#),
        ("RANK=-1 WORLD_SIZE=4", r#"RANK="-1": not a whole number"#),
        ("RANK=+1 WORLD_SIZE=4", r#"RANK="+1": not a whole number"#),
        ("PMI_RANK=0 PMI_SIZE=4.0", r#"PMI_SIZE="4.0": not a whole number"#),
        (
            "RANK=0 WORLD_SIZE=99999999999999999999999",
            r#"WORLD_SIZE="99999999999999999999999": not a whole number"#,
        ),
        ("RANK=0 WORLD_SIZE=4 LOCAL_RANK=x", r#"LOCAL_RANK="x": not a whole number"#),
        (
            "RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=x",
            r#"LOCAL_WORLD_SIZE="x": not a whole number"#,
        ),
    ] {
        let error = rank(environment).unwrap_err();
        assert!(matches!(error, LaunchError::NotANumber { .. }), "{error:?}");
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn rejects_numbers_that_do_not_go_together() {
    let less = "a rank is from 0 to one less than the size";
    let more = "more ranks on one host than in the job";
    for (environment, names, reason) in [
        ("RANK=4 WORLD_SIZE=4", "RANK=4, WORLD_SIZE=4", less),
        ("RANK=0 WORLD_SIZE=0", "RANK=0, WORLD_SIZE=0", less),
        (
            "SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=4",
            "SLURM_PROCID=3, SLURM_STEP_NUM_TASKS=2",
            less,
        ),
        ("RANK=0 WORLD_SIZE=2 LOCAL_RANK=2", "LOCAL_RANK=2, WORLD_SIZE=2", less),
        (
            "PMI_RANK=0 PMI_SIZE=8 MPI_LOCALRANKID=4 MPI_LOCALNRANKS=4",
            "MPI_LOCALRANKID=4, MPI_LOCALNRANKS=4",
            less,
        ),
        ("RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=4", "LOCAL_WORLD_SIZE=4, WORLD_SIZE=2", more),
    ] {
        let error = rank(environment).unwrap_err();
        assert!(matches!(error, LaunchError::Impossible { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("{names}: {reason}"));
    }
}

#[cfg(unix)]
#[test]
fn rejects_a_value_that_is_not_text() {
    use std::os::unix::ffi::OsStringExt;
    let look_up = |name: &str| match name {
        "RANK" => Some(OsString::from_vec(vec![0xff])),
        "WORLD_SIZE" => Some("2".into()),
        _ => None,
    };
    let error = rank_from(look_up).unwrap_err();
    assert_eq!(error.to_string(), "RANK=\"\u{fffd}\": not a whole number");
}
