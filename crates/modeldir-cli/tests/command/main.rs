//! Runs every sub-command as a person does: on a shipped model, on a broken one, into a closed pipe.
#![expect(clippy::unwrap_used, reason = "what helpers meet fails the test that calls them")]

mod hostile;
mod model;
mod pages;
mod program;
mod ranks;
mod saving;
mod surroundings;
mod terminal;
mod verifying;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use serde_json::Value;

use model::{MISSING, SHORT, broken_model, copy_of_llama};
use program::{run, stderr, stdout};

/// What each sub-command that reads a model prints, somewhere, of the shipped one.
const COMMANDS: [(&str, &str); 8] = [
    ("load", "30 tensors, "),
    ("inspect", "model.layers.*.mlp.up_proj.weight"),
    ("verify", "complete and sound"),
    ("digest", "feb54e2bb4232cc97788ba76a25aec23009055c2802d84b05c843f9390b51a8b  lm_head.weight"),
    ("slice", "part: [3], "),
    ("save", "30 tensors, 350.88 KiB in "),
    ("ranks", "1  tp 1/2       30  175.88 KiB   50.1 %       896 B"),
    ("rank-load", "rank 1 of 2 (--rank): 30 tensors, 175.88 KiB in "),
];

/// A sub-command with a model and the arguments that it cannot do without; `to` is where it may
/// write.
fn args(name: &str, model: &Path, to: &Path) -> Vec<OsString> {
    let mut args = vec![model.as_os_str().to_owned()];
    match name {
        "slice" => args.extend(["model.norm.weight", "0..3"].map(OsString::from)),
        "save" => args.push(to.join("saved").into()),
        "rank-load" => args.push("--rank=1/2".into()),
        _ => {}
    }
    args
}

fn llama() -> std::path::PathBuf {
    modeldir_fixtures::model("llama")
}

#[test]
fn every_command_prints_what_it_should() {
    for (name, line) in COMMANDS {
        let folder = tempfile::tempdir().unwrap();
        let output = run(name, &args(name, &llama(), folder.path()));
        assert!(output.status.success(), "{name}: {output:?}");
        assert!(stdout(&output).contains(line), "{name}: {}", stdout(&output));
        assert!(!stdout(&output).contains('\u{1b}'), "{name}: colours in a pipe");
        assert!(!stdout(&output).ends_with("\n\n"), "{name}: an empty line at the end");
        assert_eq!(stderr(&output), "", "{name}");
    }
}

#[test]
fn every_command_prints_json() {
    for (name, _) in COMMANDS {
        let folder = tempfile::tempdir().unwrap();
        let output =
            run(name, &[args(name, &llama(), folder.path()), vec!["--json".into()]].concat());
        assert!(output.status.success(), "{name}: {output:?}");
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(value.is_object() || value.is_array(), "{name}: {value}");
        assert_eq!(stderr(&output), "", "{name}");
    }
}

#[test]
fn every_command_takes_a_directory_a_file_and_an_index() {
    let index = llama().join("model.safetensors.index.json");
    let file = llama().join("model-00004-of-00004.safetensors");
    for (name, _) in COMMANDS {
        for path in [&llama(), &index, &file] {
            let folder = tempfile::tempdir().unwrap();
            let mut args = args(name, path, folder.path());
            if name == "slice" && path == &file {
                args[1] = "lm_head.weight".into();
            }
            let output = run(name, &args);
            assert!(output.status.success(), "{name} {}: {}", path.display(), stderr(&output));
        }
    }
}

#[test]
fn every_command_says_all_that_is_wrong_and_fails() {
    let broken = broken_model();
    for (name, _) in COMMANDS {
        let output = run(name, &args(name, broken.path(), broken.path()));
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        for said in ["error: ", MISSING, SHORT] {
            assert!(stderr(&output).contains(said), "{name}: {}", stderr(&output));
        }
    }
}

#[test]
fn a_command_line_that_is_wrong_has_a_code_of_its_own() {
    let llama = llama();
    let cases: [&[&OsStr]; 11] = [
        &["inspect".as_ref()],
        &["no-such-command".as_ref()],
        &["slice".as_ref(), llama.as_os_str(), "lm_head.weight".as_ref(), "1...2".as_ref()],
        &["digest".as_ref(), llama.as_os_str(), "--uneven=chunk".as_ref()],
        &["ranks".as_ref(), llama.as_os_str(), "--tp=4".as_ref(), "--ep=6".as_ref()],
        &["rank-load".as_ref(), llama.as_os_str()],
        &["save".as_ref(), llama.as_os_str(), "x".as_ref(), "--cast=i8".as_ref()],
        &["save".as_ref(), llama.as_os_str(), "x.safetensors".as_ref(), "--tp=2".as_ref()],
        &["save".as_ref(), llama.as_os_str(), "x".as_ref(), "--uneven=chunk".as_ref()],
        &["slice".as_ref(), llama.as_os_str(), "lm_head.weight".as_ref(), "--to=x.bin".as_ref()],
        &["rank-load".as_ref(), llama.as_os_str(), "--rank=0/2".as_ref(), "--replace".as_ref()],
    ];
    for case in cases {
        let name = case[0].to_str().unwrap();
        let output = run(name, &case[1..]);
        assert_eq!(output.status.code(), Some(2), "{case:?}: {output:?}");
        assert!(stderr(&output).starts_with("error: "), "{case:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{case:?}");
    }
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
    let output = run("inspect", &[llama().as_os_str(), "--json".as_ref()]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["tensors"].as_object().unwrap().len(), 30);
    assert_eq!(found["tensors"]["lm_head.weight"]["dtype"], "BF16");
    assert_eq!(found["shards"].as_array().unwrap().len(), 4);
}

#[test]
fn inspect_says_what_a_configuration_leaves_out() {
    let lines = stdout(&run("inspect", &[modeldir_fixtures::model("variants")]));
    let value = |key: &str| lines.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    assert_eq!((value("architecture"), value("hidden size")), (Some("not stated"), Some("8")));

    let folder = copy_of_llama();
    fs::remove_file(folder.path().join("config.json")).unwrap();
    let lines = stdout(&run("inspect", &[folder.path()]));
    assert!(lines.lines().any(|line| line.split_whitespace().eq(["configuration", "none"])));
}

#[test]
fn load_counts_shards_and_dtypes_in_json() {
    let output = run("load", &[llama().as_os_str(), "--json".as_ref(), "--threads=2".as_ref()]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["tensors"], 30);
    assert_eq!(found["shards"].as_object().unwrap().len(), 4);
    assert_eq!(found["dtypes"]["BF16"]["bytes"], found["bytes"]);
    assert_eq!(found["threads"], 2);
}

#[test]
fn slice_prints_values_and_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("rows.safetensors");
    let mut args = vec![llama().into_os_string()];
    args.extend(["model.embed_tokens.weight", "2..4,0..8", "--json", "--to"].map(OsString::from));
    args.push(to.clone().into());
    let output = run("slice", &args);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["part"]["shape"], serde_json::json!([2, 8]));
    assert_eq!(found["values"].as_array().unwrap().len(), 8);

    let rows = modeldir::ModelDir::open(&to).unwrap().read("model.embed_tokens.weight").unwrap();
    let whole = modeldir::ModelDir::open(llama()).unwrap();
    let whole = whole.read("model.embed_tokens.weight").unwrap();
    assert_eq!(rows.shape(), [2, 8]);
    assert_eq!(rows.bytes()[..16], whole.bytes()[2 * 64 * 2..][..16]);

    let again = run("slice", &args);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("--replace"), "{}", stderr(&again));
    args.push("--replace".into());
    assert!(run("slice", &args).status.success());
}
