//! Runs every example, and holds them to their size and to what they may depend on.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Once;
use std::{env, fs};

/// What each example prints, somewhere, of the shipped model.
const EXAMPLES: [(&str, &str); 9] = [
    ("load", "30 tensors, 359296 bytes in "),
    ("inspect", "lm_head.weight: BF16 [320, 64], 40960 bytes"),
    ("lazy", "359296 bytes mapped in "),
    ("slice", "two rows: [2, 64], 256 of 40960 bytes"),
    ("save", "7 tensors read back and equal"),
    ("convert", "model.embed_tokens.weight: BF16 becomes F16"),
    ("stream", "30 tensors, 359296 bytes on the device"),
    ("async", "30 and 30 tensors loaded"),
    ("rank_load", "lm_head.weight: [160, 64] of [320, 64]"),
];

const MAX_LINES: usize = 40;

#[test]
fn every_example_runs_without_arguments() {
    for (example, line) in EXAMPLES {
        let output = run(example, &[] as &[&str]);
        assert!(output.status.success(), "{example}: {output:?}");
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(stdout.contains(line), "{example}: {stdout}");
        assert_eq!(stderr, "", "{example}");
    }
}

#[test]
fn every_example_takes_a_path() {
    let models = folder().join("../fixtures/models");
    for (example, _) in EXAMPLES {
        let output = run(example, &[models.join("qwen3-moe")]);
        assert!(output.status.success(), "{example}: {output:?}");
        let output = run(example, &[models.join("absent")]);
        assert_eq!(output.status.code(), Some(1), "{example}: {output:?}");
        assert!(text(&output.stderr).contains("absent"), "{example}: {output:?}");
    }
}

#[test]
fn every_example_is_short_and_listed_here() {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let is_code = path.extension() == Some(OsStr::new("rs"));
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !is_code {
            continue;
        }
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= MAX_LINES, "{name}: {lines} lines");
        names.push(name);
    }
    names.sort_unstable();
    let mut expected = EXAMPLES.map(|(name, _)| name);
    expected.sort_unstable();
    assert_eq!(names, expected);
}

#[test]
fn examples_depend_on_nothing_but_the_two_crates() {
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    let section = |name: &str| -> Vec<String> {
        let after = manifest.split_once(&format!("[{name}]\n")).unwrap().1;
        let lines = after.lines().take_while(|line| !line.starts_with('['));
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| line.split(['.', ' ']).next().unwrap().to_owned()).collect()
    };
    assert_eq!(section("dependencies"), ["modeldir", "tensorfile"]);
    assert_eq!(section("dev-dependencies"), ["tokio"]);

    // The runtime is for one example alone.
    for (name, _) in EXAMPLES {
        let code = fs::read_to_string(folder().join(format!("{name}.rs"))).unwrap();
        assert_eq!(code.contains("tokio::"), name == "async", "{name}");
    }
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs an example to its end, without what a launcher of these tests has set.
fn run(example: &str, args: &[impl AsRef<OsStr>]) -> Output {
    let mut command = Command::new(program(example));
    for (variable, _) in env::vars_os() {
        let name = variable.to_string_lossy().into_owned();
        if ["RANK", "SIZE", "PROCID", "TASKS"].iter().any(|end| name.ends_with(end)) {
            command.env_remove(variable);
        }
    }
    command.args(args).output().unwrap()
}

/// Where Cargo has put the example: in the folder `examples` beside the one of this test.
fn program(example: &str) -> PathBuf {
    static BUILD: Once = Once::new();
    let this = env::current_exe().unwrap();
    let profile = this.parent().and_then(Path::parent).unwrap();
    let program =
        |name: &str| profile.join("examples").join(format!("{name}{}", env::consts::EXE_SUFFIX));
    // `cargo test` builds the examples too, but `cargo test --test examples` does not. To build them
    // always would compile anew where other features are on.
    BUILD.call_once(|| {
        if !EXAMPLES.iter().all(|(name, _)| is_fresh(&program(name)).unwrap_or(false)) {
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
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let name = profile.file_name().and_then(OsStr::to_str).unwrap();
    let name = if name == "debug" { "dev" } else { name };
    let status = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--package",
            "modeldir-examples",
            "--examples",
            "--profile",
            name,
        ])
        .current_dir(folder())
        .status();
    assert!(status.unwrap().success(), "the examples do not build");
}
