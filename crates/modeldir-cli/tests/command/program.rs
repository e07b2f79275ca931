//! The programs of the examples: built if need be, and run in a clean environment.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Once;

use crate::EXAMPLES;

/// Runs an example to its end.
pub(crate) fn run(example: &str, args: &[impl AsRef<OsStr>]) -> Output {
    command(example).args(args).output().unwrap()
}

/// The example's program in a clean environment, without what a launcher of these tests has set.
pub(crate) fn command(example: &str) -> Command {
    let mut command = Command::new(program(example));
    command.env_remove("RUST_LOG");
    for launcher in ["", "OMPI_COMM_WORLD_", "PMI_", "MV2_COMM_WORLD_"] {
        for number in ["RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"] {
            command.env_remove(format!("{launcher}{number}"));
        }
    }
    for variable in ["WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"] {
        command.env_remove(variable);
    }
    command
}

/// Where Cargo has put the example: in the folder `examples` beside the one of this test.
fn program(example: &str) -> PathBuf {
    static BUILD: Once = Once::new();
    let this = std::env::current_exe().unwrap();
    let profile = this.parent().and_then(Path::parent).unwrap();
    let program = |example: &str| {
        profile.join("examples").join(format!("{example}{}", std::env::consts::EXE_SUFFIX))
    };
    // `cargo test` builds the examples too, but `cargo test --test run` does not.
    BUILD.call_once(|| {
        if !EXAMPLES.iter().all(|(example, _)| is_fresh(&program(example)).unwrap_or(false)) {
            build_examples(profile);
        }
    });
    program(example)
}

/// Whether no source of a program is newer than it. Cargo lists them in a file beside it; where a
/// path in there cannot be followed, nothing is known.
fn is_fresh(program: &Path) -> std::io::Result<bool> {
    let modified = |path: &Path| fs::metadata(path)?.modified();
    let built = modified(program)?;
    let list = fs::read_to_string(program.with_extension("d"))?;
    let sources = list.split_once(": ").map_or("", |(_, sources)| sources);
    for source in sources.split_whitespace() {
        if modified(Path::new(source))? > built {
            return Ok(false);
        }
    }
    Ok(!sources.is_empty())
}

fn build_examples(profile: &Path) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let name = profile.file_name().and_then(OsStr::to_str).unwrap();
    let name = if name == "debug" { "dev" } else { name };
    let status = Command::new(cargo)
        .args(["build", "--package", "modeldir-cli", "--examples", "--profile", name])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(status.unwrap().success(), "the examples do not build");
}

/// What it has printed.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What it has said of errors.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
