//! The command, run in a clean environment.

use std::ffi::OsStr;
use std::process::{Command, Output};

/// Runs a sub-command on a model to its end.
pub(crate) fn run(name: &str, args: &[impl AsRef<OsStr>]) -> Output {
    command(name).args(args).output().unwrap()
}

/// The command without what a launcher of these tests has set.
pub(crate) fn command(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_modeldir"));
    command.arg(name).env_remove("RUST_LOG");
    for launcher in ["", "OMPI_COMM_WORLD_", "PMI_", "MV2_COMM_WORLD_"] {
        for number in ["RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"] {
            command.env_remove(format!("{launcher}{number}"));
        }
    }
    for variable in ["WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"]
        .into_iter()
        .chain(["FLUX_TASK_RANK", "FLUX_JOB_SIZE", "PALS_RANKID", "PALS_SIZE", "PMIX_RANK"])
    {
        command.env_remove(variable);
    }
    command
}

/// What it has printed.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What it has said of errors.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
