//! Runs every example as a person does: without arguments, on a broken model, into a closed pipe.

mod hostile;
mod program;
mod ranks;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::process::Stdio;

use serde_json::Value;

use program::{command, run, stderr, stdout};

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
