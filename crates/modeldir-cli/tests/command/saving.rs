//! What `save` writes.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use modeldir::{Dtype, ModelDir};
use serde_json::Value;

use crate::llama;
use crate::program::{run, stderr, stdout};

/// Saves the shipped model with these options, and returns what was printed.
fn save(to: &Path, options: &[&str]) -> String {
    let llama = llama();
    let paths = [llama.as_os_str(), to.as_os_str()];
    let output =
        run("save", &[&paths[..], &options.iter().map(OsStr::new).collect::<Vec<_>>()].concat());
    assert!(output.status.success(), "{output:?}");
    stdout(&output)
}

#[test]
fn save_writes_the_chosen_tensors() {
    let folder = tempfile::tempdir().unwrap();
    for to in ["part.safetensors", "part"].map(|name| folder.path().join(name)) {
        save(&to, &["--only=model.layers.1.**", "--verify"]);
        let lines = stdout(&run("digest", &[to]));
        assert_eq!(lines.lines().count(), 9);
        assert!(lines.lines().all(|line| line.contains("  model.layers.1.")), "{lines}");
    }
}

#[test]
fn save_writes_other_shards_of_the_same_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("saved");
    let said = save(&to, &["--max-shard-bytes=60kB", "--verify"]);
    assert!(said.ends_with("read back and equal\n"), "{said}");
    assert!(ModelDir::open(&to).unwrap().shards().len() > 4);
    assert_eq!(run("digest", &[&to]).stdout, run("digest", &[llama()]).stdout);
    assert!(run("verify", &[&to]).status.success());
}

#[test]
fn save_converts_floats_and_the_configuration_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("saved");
    save(&to, &["--cast=f32", "--verify"]);
    let [before, after] = [llama(), to].map(|path| ModelDir::open(path).unwrap());
    assert!(after.tensors().all(|tensor| tensor.dtype() == Dtype::F32));
    let fields = |model: &ModelDir| model.config().unwrap().raw().clone();
    assert_eq!(fields(&before)["dtype"], "bfloat16");
    assert_eq!(fields(&after)["dtype"], "float32");
    let name = "model.norm.weight";
    let values = |model: &ModelDir| model.read(name).unwrap().to_f32().unwrap();
    assert_eq!(values(&after), values(&before));
}

#[test]
fn save_copies_what_lies_beside_the_weights() {
    let folder = tempfile::tempdir().unwrap();
    let [with, without] = ["with", "without"].map(|name| folder.path().join(name));
    save(&with, &[]);
    save(&without, &["--weights-only"]);
    let [before, with, without] =
        [llama(), with, without].map(|path| ModelDir::open(path).unwrap());
    assert_eq!(before.config().unwrap().raw(), with.config().unwrap().raw());
    let roles =
        |model: &ModelDir| model.tokenizer().iter().map(|(role, _)| role).collect::<Vec<_>>();
    assert_eq!(roles(&before), roles(&with));
    assert!(without.config().is_err() && roles(&without).is_empty());
}

#[test]
fn save_writes_a_directory_for_each_rank_or_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let [all, one] = ["all", "one"].map(|name| folder.path().join(name));
    let said = save(&all, &["--tp=2", "--pp=2", "--verify"]);
    assert_eq!(said.lines().count(), 4, "{said}");
    save(&one, &["--tp=2", "--pp=2", "--rank=2/4"]);
    let name = "rank-2-of-4";
    assert_eq!(run("digest", &[all.join(name)]).stdout, run("digest", &[one.join(name)]).stdout);
    assert_eq!(fs::read_dir(&one).unwrap().count(), 1);

    // Without numbers the ranks are those that cut tensors.
    let tensors = folder.path().join("tensors");
    save(&tensors, &["--rank=1/2"]);
    let part = run("digest", &[llama().as_os_str(), "--tp=1/2".as_ref()]);
    assert_eq!(run("digest", &[tensors.join("rank-1-of-2")]).stdout, part.stdout);
}

#[test]
fn save_writes_ranks_that_hold_none_of_the_chosen_tensors() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), &["--pp=2", "--only=model.layers.0.**"]);
    let tensors = |name| ModelDir::open(folder.path().join(name)).unwrap().len();
    assert_eq!((tensors("rank-0-of-2"), tensors("rank-1-of-2")), (9, 0));

    let args = [llama().into_os_string(), folder.path().join("none").into(), "--only=none".into()];
    let output = run("save", &args);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!folder.path().join("none").exists());
}

#[test]
fn save_replaces_weights_only_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("saved");
    save(&to, &[]);
    let again = run("save", &[llama(), to.clone()]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("saved"), "{}", stderr(&again));
    assert!(stderr(&again).contains("(--replace replaces"), "{}", stderr(&again));
    let said = save(&to, &["--replace", "--cast=f16", "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said[0]["tensors"], 30);
    let model = ModelDir::open(&to).unwrap();
    assert!(model.tensors().all(|tensor| tensor.dtype() == Dtype::F16));
}
