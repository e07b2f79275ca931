//! Runs every example as a person does: without arguments, on a broken model, into a closed pipe.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;

use modeldir::{ModelDir, Selection};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// What each example prints, somewhere, for the shipped model.
const EXAMPLES: [(&str, &str); 9] = [
    ("load", "30 tensors, "),
    ("inspect", "model.layers.*.mlp.up_proj.weight"),
    ("verify", "complete and sound"),
    ("digest", "feb54e2bb4232cc97788ba76a25aec23009055c2802d84b05c843f9390b51a8b  lm_head.weight"),
    ("lazy", "30 tensors, "),
    ("slice", "part: [2, 8], "),
    ("save", "30 tensors, "),
    ("ranks", "1  tp 1/2       30  175.88 KiB   50.1 %       896 B"),
    ("rank_load", "rank 1 of 2 (--rank): 30 tensors, 175.88 KiB in "),
];

/// The arguments without which an example does not run: no rank is taken for granted.
fn needed_args(example: &str) -> &'static [&'static str] {
    if example == "rank_load" { &["--rank=1/2"] } else { &[] }
}

/// The arguments after the path that an example cannot do without.
fn further_args(example: &str) -> &'static [&'static str] {
    if example == "slice" { &["model.norm.weight", "0..3"] } else { &[] }
}

#[test]
fn every_example_runs_without_arguments() {
    for (example, line) in EXAMPLES {
        let output = run(example, needed_args(example));
        assert!(output.status.success(), "{example}: {output:?}");
        assert!(stdout(&output).contains(line), "{example}: {}", stdout(&output));
        assert!(!stdout(&output).contains('\u{1b}'), "{example}: colours in a pipe");
        assert_eq!(stderr(&output), "", "{example}");
    }
}

#[test]
fn every_example_takes_a_directory_a_file_and_an_index() {
    let llama = modeldir_fixtures::model("llama");
    let index = llama.join("model.safetensors.index.json");
    let file = llama.join("model-00004-of-00004.safetensors");
    for (example, _) in EXAMPLES {
        for path in [&llama, &index, &file] {
            let mut args = vec![path.as_os_str()];
            let name = if path == &file { "lm_head.weight" } else { "model.norm.weight" };
            args.extend((example == "slice").then_some(OsStr::new(name)));
            args.extend(needed_args(example).iter().map(OsStr::new));
            let output = run(example, &args);
            assert!(output.status.success(), "{example} {}: {}", path.display(), stderr(&output));
        }
    }
}

#[test]
fn every_example_says_all_that_is_wrong_and_fails() {
    let broken = broken_model();
    for (example, _) in EXAMPLES {
        let mut args = vec![broken.path().as_os_str()];
        args.extend(further_args(example).iter().map(OsStr::new));
        args.extend(needed_args(example).iter().map(OsStr::new));
        let output = run(example, &args);
        assert_eq!(output.status.code(), Some(1), "{example}: {output:?}");
        for said in ["error: ", MISSING, SHORT] {
            assert!(stderr(&output).contains(said), "{example}: {}", stderr(&output));
        }
    }
}

#[test]
fn verify_lists_what_to_fetch_again() {
    let broken = broken_model();
    let output = run("verify", &[broken.path()]);
    assert_eq!(stdout(&output), format!("fetch again: {MISSING}\nfetch again: {SHORT}\n"));

    fs::write(broken.path().join("tokenizer.json"), "{").unwrap();
    for shard in [MISSING, SHORT] {
        fs::copy(modeldir_fixtures::model("llama").join(shard), broken.path().join(shard)).unwrap();
    }
    let output = run("verify", &[broken.path()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "fetch again: tokenizer.json\n");
}

#[test]
fn verify_looks_at_every_file_beside_the_weights() {
    let pointer = modeldir_fixtures::lfs_pointer(b"a sentencepiece model");
    let cases = [
        ("tokenizer.model", pointer.as_str(), "Git LFS pointer"),
        ("merges.txt", "", "empty"),
        ("vocab.txt", "", "empty"),
        ("chat_template.jinja", "", "empty"),
        ("special_tokens_map.json", "<html>", "web page"),
    ];
    for (name, text, said) in cases {
        let folder = copy_of_llama();
        fs::write(folder.path().join(name), text).unwrap();
        let output = run("verify", &[folder.path()]);
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        assert_eq!(stdout(&output), format!("fetch again: {name}\n"));
        let errors = stderr(&output);
        assert_eq!(errors.matches("error: ").count(), 1, "{errors}");
        assert!(errors.contains(name) && errors.contains(said), "{errors}");
    }
}

#[test]
fn verify_reads_every_byte_when_asked() {
    let model = modeldir_fixtures::model("t5");
    let output = run("verify", &[model.as_os_str(), "--read".as_ref()]);
    assert!(output.status.success(), "{output:?}");
    assert!(stdout(&output).contains("every byte read"), "{}", stdout(&output));
}

#[test]
fn digest_prints_what_the_python_library_reads() {
    for model in modeldir_fixtures::models() {
        let output =
            run("digest", &["--json".as_ref(), modeldir_fixtures::model(&model).as_os_str()]);
        let found: BTreeMap<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
        let expected = modeldir_fixtures::digests(&model).into_iter().map(|(name, row)| {
            let row =
                serde_json::json!({"dtype": row.dtype, "shape": row.shape, "sha256": row.sha256});
            (name, row)
        });
        assert_eq!(found, expected.collect(), "{model}");
    }
}

#[test]
fn digest_prints_what_a_rank_holds() {
    let model = ModelDir::open(modeldir_fixtures::model("llama")).unwrap();
    let whole = stdout(&run("digest", &[] as &[&str]));
    for rank in 0..4 {
        let lines = stdout(&run("digest", &["--tp", &format!("{rank}/4")]));
        assert_eq!(lines.lines().count(), 30);
        let line = |text: &str, end: &str| {
            text.lines().find(|line| line.ends_with(end)).map(str::to_owned)
        };
        let norm = "  model.norm.weight BF16 [64]";
        assert!(line(&lines, norm).is_some() && line(&lines, norm) == line(&whole, norm));
        for (name, shape, dim, range) in [
            ("lm_head.weight", "[80, 64]", 0, rank * 80..rank * 80 + 80),
            ("model.layers.2.mlp.down_proj.weight", "[64, 44]", 1, rank * 44..rank * 44 + 44),
        ] {
            let part = model.read_selection(name, &Selection::all().with_range(dim, range));
            let sha256 = Sha256::digest(part.unwrap().bytes());
            let line = line(&lines, &format!("  {name} BF16 {shape}"));
            assert!(line.is_some_and(|line| line.starts_with(&format!("{sha256:x}"))), "{name}");
        }
    }
}

#[test]
fn digest_takes_rules_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.json");
    fs::write(&rules, r#"{"rules": [{"match": "**.intermediate.dense.*", "tp": "col"}]}"#).unwrap();
    let bert = modeldir_fixtures::model("bert");
    let rules = [bert.as_os_str(), "--tp=1/3".as_ref(), "--rules".as_ref(), rules.as_os_str()];

    let uneven = stderr(&run("digest", &rules));
    for said in ["intermediate.dense.bias", "128", "2, 4, 8"] {
        assert!(uneven.contains(said), "{uneven}");
    }
    let output = run("digest", &[&rules[..], &["--uneven=balanced".as_ref()]].concat());
    let line = "encoder.layer.0.intermediate.dense.weight F16 [43, 64]";
    assert!(stdout(&output).contains(line), "{output:?}");
    let output =
        run("digest", &[&rules[..], &["--uneven=chunk", "--json"].map(OsStr::new)].concat());
    let found: BTreeMap<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["encoder.layer.1.intermediate.dense.bias"]["shape"], serde_json::json!([43]));
}

#[test]
fn digest_says_what_it_lacks_to_take_a_part() {
    let [bert, plain] = ["bert", "numbered"].map(modeldir_fixtures::model);
    let absent = [bert.as_os_str(), "--tp=0/2".as_ref(), "--rules=no.json".as_ref()];
    for (args, said) in [
        (&[bert.as_os_str(), "--tp=0/2".as_ref()][..], "no rules for model type \"bert\""),
        (&[plain.as_os_str(), "--tp=0/2".as_ref()], "no rules for model type"),
        (&absent, "no.json: No such file"),
        (&["--uneven=chunk".as_ref()], "--tp R/N"),
        (&["--tp=0/3".as_ref()], "176 elements along the inputs over 3 ranks; 2, 4, 8"),
    ] {
        let output = run("digest", args);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}

#[test]
fn ranks_adds_up_and_says_what_is_odd() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.json");
    let text =
        r#"{"rules": [{"match": "lm_haed.*", "tp": "col"}, {"match": "lm_head.*", "tp": "skip"}]}"#;
    fs::write(&rules, text).unwrap();
    let args = ["--tp=2".as_ref(), "--pp=2".as_ref(), "--rules".as_ref(), rules.as_os_str()];

    let output = run("ranks", &[&args[..], &["--json".as_ref()]].concat());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let sum = |field: &str| -> u64 {
        found["ranks"].as_array().unwrap().iter().map(|rank| rank[field].as_u64().unwrap()).sum()
    };
    for field in ["tensors", "bytes_selected", "bytes_replicated", "bytes_read", "reads"] {
        assert_eq!(found["sum"][field], sum(field), "{field}");
    }
    // The head is nowhere, and the seven norms of 128 bytes are on both ranks of their stage.
    let (whole, norms) = (found["bytes"].as_u64().unwrap(), 7 * 128);
    assert_eq!(sum("bytes_selected"), whole - 320 * 64 * 2 + norms);
    assert_eq!(sum("bytes_replicated"), 2 * norms);
    assert_eq!(found["left_out"], serde_json::json!(["lm_head.weight"]));
    assert_eq!(found["unused_rules"], serde_json::json!(["lm_haed.*"]));

    let lines = stdout(&run("ranks", &args));
    for line in ["1 tensor on no rank: lm_head.weight", "1 rule of no use: lm_haed.*"] {
        assert!(lines.lines().any(|found| found == line), "{lines}");
    }
}

#[test]
fn rank_load_is_the_rank_that_a_launcher_says() {
    for (launcher, [rank, size]) in [
        ("torchrun", ["RANK", "WORLD_SIZE"]),
        ("Open MPI", ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"]),
        ("Slurm", ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut rank_load = command("rank_load");
        rank_load.env(rank, "2").env(size, "4").args(["--json", "--save"]).arg(folder.path());
        let output = rank_load.output().unwrap();
        let text = stdout(&output);
        assert_eq!((text.lines().count(), stderr(&output)), (1, String::new()));
        let found: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["rank"], 2);
        assert_eq!(found["size"], 4);
        assert_eq!(found["launcher"], launcher);

        // What was saved is what `digest` prints of the part and of the saved directory.
        let part = run("digest", &["--tp=2/4"]).stdout;
        assert_eq!(found["digest"], format!("{:x}", Sha256::digest(&part)));
        assert_eq!(run("digest", &[folder.path().join("rank-2-of-4")]).stdout, part);
        let ranks = run("ranks", &["--tp=4", "--json"]).stdout;
        let ranks: Value = serde_json::from_slice(&ranks).unwrap();
        for field in ["bytes_selected", "bytes_read", "reads", "tensors"] {
            assert_eq!(found[field], ranks["ranks"][2][field], "{field}");
        }
        assert_eq!(found["bytes_planned"], found["bytes_read"]);
    }
}

#[test]
fn rank_load_is_no_rank_by_default() {
    let output = run("rank_load", &[] as &[&str]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), String::new()));
    assert!(stderr(&output).contains("mpirun, torchrun or srun"), "{}", stderr(&output));

    let half = command("rank_load").env("RANK", "0").output().unwrap();
    assert!(stderr(&half).contains("WORLD_SIZE is not"), "{half:?}");
    let more = run("rank_load", &["--rank=0/4", "--tp=2", "--pp=4"]);
    assert!(stderr(&more).contains("make 8 ranks, this is 0 of 4"), "{more:?}");
    let staged = run("rank_load", &["--rank=3/4", "--tp=2", "--pp=2"]);
    assert!(stdout(&staged).starts_with("rank 3 of 4 (--rank): 11 tensors, "), "{staged:?}");
}

#[test]
fn inspect_prints_one_json_object() {
    let output = run("inspect", &["--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["tensors"].as_object().unwrap().len(), 30);
    assert_eq!(found["tensors"]["lm_head.weight"]["dtype"], "BF16");
    assert_eq!(found["shards"].as_array().unwrap().len(), 4);
}

#[test]
fn save_writes_the_chosen_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("part.safetensors");
    let from = modeldir_fixtures::model("llama");
    let args = [from.as_os_str(), to.as_os_str(), "--only".as_ref(), "model.layers.1.".as_ref()];
    assert!(run("save", &args).status.success());
    let lines = stdout(&run("digest", &[to]));
    assert_eq!(lines.lines().count(), 9);
    assert!(lines.lines().all(|line| line.contains("  model.layers.1.")), "{lines}");
}

#[test]
#[cfg(unix)]
fn a_reader_that_goes_away_is_no_error() {
    for (example, _) in EXAMPLES {
        let (stdout, reader) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(reader);
        let output = command(example)
            .args(needed_args(example))
            .stdout(Stdio::from(std::os::fd::OwnedFd::from(stdout)))
            .stderr(Stdio::piped())
            .spawn()
            .and_then(|child| child.wait_with_output())
            .unwrap();
        assert!(output.status.success(), "{example}: {output:?}");
        assert_eq!(stderr(&output), "", "{example}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command("digest").stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("error: "), "{}", stderr(&output));
}

const MISSING: &str = "model-00002-of-00004.safetensors";
const SHORT: &str = "model-00003-of-00004.safetensors";

/// A folder with the files of a shipped model.
fn copy_of_llama() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(modeldir_fixtures::model("llama")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
    }
    folder
}

/// A model with one shard missing and one cut short.
fn broken_model() -> tempfile::TempDir {
    let folder = copy_of_llama();
    fs::remove_file(folder.path().join(MISSING)).unwrap();
    let short = fs::File::options().write(true).open(folder.path().join(SHORT)).unwrap();
    short.set_len(short.metadata().unwrap().len() - 1).unwrap();
    folder
}

fn run(example: &str, args: &[impl AsRef<OsStr>]) -> Output {
    command(example).args(args).output().unwrap()
}

/// The example's program in a clean environment, without what a launcher of these tests has set.
fn command(example: &str) -> Command {
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
        .args(["build", "--package", "modeldir-examples", "--examples", "--profile", name])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(status.unwrap().success(), "the examples do not build");
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
