//! What `verify` finds wrong, and what it says is to be fetched again.

use std::fs;

use serde_json::{Value, json};

use crate::model::{MISSING, SHORT, broken_model, copy_of_llama};
use crate::program::{run, stderr, stdout};

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
fn verify_says_the_same_in_json() {
    let broken = broken_model();
    let output = run("verify", &[broken.path().as_os_str(), "--json".as_ref()]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["sound"], false);
    assert_eq!(found["fetch_again"], json!([MISSING, SHORT]));
    assert!(found["faults"][0].as_str().unwrap().contains(MISSING), "{found}");
}

#[test]
fn verify_asks_for_nothing_that_an_old_index_names() {
    let folder = copy_of_llama();
    fs::rename(folder.path().join(MISSING), folder.path().join("output.safetensors")).unwrap();
    let output = run("verify", &[folder.path()]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), String::new()));
    let errors = stderr(&output);
    for said in [MISSING, "output.safetensors is there with", "--file opens what is there"] {
        assert!(errors.contains(said), "{said}: {errors}");
    }
    let file = ["--file", "output.safetensors"].map(std::ffi::OsStr::new);
    let output = run("verify", &[&[folder.path().as_os_str()], &file[..]].concat());
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn verify_calls_no_model_complete_that_is_mostly_unread() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    let small = modeldir_fixtures::file(&[modeldir_fixtures::Tensor::random("t", "U8", &[8])]);
    put("residual.safetensors", &small);
    put("model-q4k.uqff", &vec![0; 10_000]);
    let output = run("verify", &[folder.path()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let says = stdout(&output);
    assert!(!says.contains("complete") && says.contains("model-q4k.uqff (10000 bytes)"), "{says}");

    // Beside a model of the usual name, the others are copies of it.
    put("model.safetensors", &small);
    let output = run("verify", &[folder.path()]);
    assert!(output.status.success() && !stdout(&output).contains("complete"), "{output:?}");
    put("model-q4k.uqff", b"x");
    fs::remove_file(folder.path().join("residual.safetensors")).unwrap();
    let output = run("verify", &[folder.path()]);
    assert!(stdout(&output).contains("complete and sound"), "{output:?}");
}

#[test]
fn the_files_of_one_rank_are_opened_by_rank_and_number() {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..2 {
        let name = format!("t{rank}");
        let bytes =
            modeldir_fixtures::file(&[modeldir_fixtures::Tensor::random(&name, "U8", &[8])]);
        fs::write(folder.path().join(format!("model{rank}-mp2.safetensors")), bytes).unwrap();
    }
    let output = run("verify", &[folder.path()]);
    let errors = stderr(&output);
    assert!(errors.contains("files of 2 ranks") && errors.contains("--of-rank opens"), "{errors}");
    let of = |rank: &str| {
        run("inspect", &[folder.path().as_os_str(), "--of-rank".as_ref(), rank.as_ref()])
    };
    assert!(stdout(&of("1/2")).contains("t1"), "{:?}", of("1/2"));
    assert_eq!(of("1/4").status.code(), Some(1));
}
