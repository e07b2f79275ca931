//! Runs a case in a process of its own: with fewer open files, or as a user whom permissions bind.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, geteuid, setrlimit};

use crate::case::{Case, Outcome};
use crate::folder::Copy;

/// The variable that makes a process run the one case in the folder that it names.
pub const CHILD_CASE: &str = "MODELDIR_TESTS_CHILD_CASE";

/// The variable with the most files that a child may have open at once.
const CHILD_NOFILE: &str = "MODELDIR_TESTS_CHILD_NOFILE";

/// The user and group that own nothing.
const NOBODY: u32 = 65534;

/// Runs the case that [`CHILD_CASE`] names, if it names one: then this process is a child of the
/// runner, and ends with this code.
pub fn run_as_child() -> Option<(ExitCode, String)> {
    let folder = env::var_os(CHILD_CASE)?;
    let result = limit_files().and_then(|()| Case::new("child", folder.as_ref()).run_here());
    Some(match result {
        Ok(()) => (ExitCode::SUCCESS, String::new()),
        Err(wrong) => (ExitCode::FAILURE, wrong),
    })
}

fn limit_files() -> Result<(), String> {
    let Ok(nofile) = env::var(CHILD_NOFILE) else { return Ok(()) };
    let nofile = nofile.parse().map_err(|_| format!("{CHILD_NOFILE}: {nofile:?}"))?;
    let limit = Rlimit { current: Some(nofile), maximum: Some(nofile) };
    setrlimit(Resource::Nofile, limit).map_err(|error| format!("setrlimit: {error}"))
}

/// Runs the case in `folder` in a process that may have so many files open.
pub(crate) fn run_with_nofile(folder: &Path, nofile: u64) -> Result<Outcome, String> {
    let executable = env::current_exe().map_err(|error| format!("current_exe: {error}"))?;
    let mut command = Command::new(executable);
    finish(command.env(CHILD_CASE, folder).env(CHILD_NOFILE, nofile.to_string()))
}

/// Whether file permissions bind this process.
pub(crate) fn is_root() -> bool {
    geteuid().is_root()
}

/// Runs a copy of the case in `folder` as a user who owns nothing.
pub(crate) fn run_as_nobody(folder: &Path) -> Result<Outcome, String> {
    let copy = Copy::of(folder).map_err(|error| format!("copying the case: {error}"))?;
    let executable = copy.parent().join("cases");
    let prepared = env::current_exe()
        .and_then(|this| fs::copy(this, &executable))
        .and_then(|_| open_to_all(copy.parent()))
        .and_then(|()| open_to_all(&executable));
    prepared.map_err(|error| format!("copying the runner: {error}"))?;
    let mut command = Command::new(&executable);
    std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
    std::os::unix::process::CommandExt::gid(&mut command, NOBODY);
    if command.arg("--list").env_remove(CHILD_CASE).output().is_err() {
        return Ok(Outcome::Skipped(
            "needs a user other than root, and cannot become one".to_owned(),
        ));
    }
    let mut command = Command::new(&executable);
    std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
    std::os::unix::process::CommandExt::gid(&mut command, NOBODY);
    finish(command.env(CHILD_CASE, copy.path()))
}

fn open_to_all(path: &Path) -> std::io::Result<()> {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(path, mode)
}

/// Waits for a child and takes over what it found.
fn finish(command: &mut Command) -> Result<Outcome, String> {
    let output = command.output().map_err(|error| format!("starting a child: {error}"))?;
    if output.status.success() {
        return Ok(Outcome::Passed);
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {said}{complained}", output.status))
}
