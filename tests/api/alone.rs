//! A test in a process of its own: other limits, another environment, one subscriber for all threads.

use std::env;
use std::ffi::OsStr;
use std::process::Command;

/// Set in the process that [`run_alone`] starts.
pub(crate) const ALONE: &str = "MODELDIR_TESTS_ALONE";

/// Whether this is the process that [`run_alone`] started.
pub(crate) fn is_alone() -> bool {
    env::var_os(ALONE).is_some()
}

/// Runs one test of this binary, by its full name, in a process with these variables besides.
pub(crate) fn run_alone(test: &str, variables: &[(&str, &OsStr)]) {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test])
        .env(ALONE, "1")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
