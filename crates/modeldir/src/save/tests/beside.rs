//! Tests of the files that are copied with the weights.

use std::fs;
use std::path::{Path, PathBuf};

use tensorfile::{Dtype, Float};

use super::{HALVES, INDEX, contents, copied, listed, loaded, options, tiny, touch};
use crate::open_options::Family;
use crate::save::commit::{self, Changes};
use crate::save::{Beside, Existing};
use crate::{ErrorKind, ModelDir, SaveOptions, TensorStore, resolve};

fn copying(max_shard_bytes: u64) -> SaveOptions {
    SaveOptions { beside: Beside::Copy, ..options(max_shard_bytes) }
}

fn replacing(max_shard_bytes: u64) -> SaveOptions {
    SaveOptions { existing: Existing::Replace, ..copying(max_shard_bytes) }
}

/// The names beside the weights of the model `llama`.
const OF_LLAMA: [&str; 9] = [
    "added_tokens.json",
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
];

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// A folder with a model of one small file, and these files beside it.
fn model_with(beside: &[(&str, &str)]) -> (tempfile::TempDir, TensorStore) {
    let folder = tempfile::tempdir().unwrap();
    tiny(1, 2).save(folder.path()).unwrap();
    for (name, text) in beside {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let store = loaded(folder.path());
    (folder, store)
}

/// A folder with a model of `F32` and a smaller tensor of `BF16`, and this configuration.
fn floats(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tensors = [
        modeldir_fixtures::Tensor::new("large", "F32", &[4], vec![0; 16]),
        modeldir_fixtures::Tensor::new("small", "BF16", &[2], vec![0; 4]),
    ];
    let file = modeldir_fixtures::file(&tensors);
    fs::write(folder.path().join("model.safetensors"), file).unwrap();
    fs::write(folder.path().join("config.json"), config).unwrap();
    folder
}

#[test]
fn what_was_saved_is_plain_data() {
    let folder = tempfile::tempdir().unwrap();
    let saved = tiny(1, 2).save_with(folder.path(), &options(4)).unwrap();
    let value = serde_json::to_value(&saved).unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let shards = HALVES.map(path);
    let (index, beside) = (path(INDEX), [""; 0]);
    let expected =
        serde_json::json!({ "shards": shards, "index": index, "beside": beside, "byte_len": 8 });
    assert_eq!(value, expected);
}

#[test]
fn copies_are_what_they_were_and_open_alike() {
    let from = modeldir_fixtures::model("llama");
    let store = loaded(&from);
    for max in [100_000, 1 << 40] {
        let folder = tempfile::tempdir().unwrap();
        let saved = store.save_with(folder.path(), &copying(max)).unwrap();
        assert_eq!(saved.beside, OF_LLAMA.map(|name| folder.path().join(name)));
        for name in OF_LLAMA {
            assert!(
                fs::read(folder.path().join(name)).unwrap() == fs::read(from.join(name)).unwrap()
            );
        }
        let (copy, model) =
            (ModelDir::open(folder.path()).unwrap(), ModelDir::open(&from).unwrap());
        assert_eq!(copy.config().unwrap().raw(), model.config().unwrap().raw());
        assert_eq!(copy.tokenizer().json().unwrap(), model.tokenizer().json().unwrap());
        let template =
            |model: &ModelDir| model.tokenizer().chat_templates().unwrap()[0].text.clone();
        assert_eq!(template(&copy), template(&model));
    }
}

#[test]
fn only_files_with_a_role_are_copied_and_templates_in_their_folder() {
    let beside = [
        ("config.json", "{}"),
        ("additional_chat_templates/rag.jinja", "{{ a }}"),
        ("additional_chat_templates/notes.txt", ""),
        ("README.md", "# x"),
        ("model.fp16.safetensors.index.json", "{}"),
        ("pytorch_model.bin", "x"),
        ("1_Pooling/config.json", "{}"),
        ("spiece.model", "\u{1}"),
    ];
    let (_from, store) = model_with(&beside);
    let folder = tempfile::tempdir().unwrap();
    let saved = store.save_with(folder.path(), &copying(4)).unwrap();
    let expected = ["additional_chat_templates/rag.jinja", "config.json", "spiece.model"];
    assert_eq!(saved.beside, expected.map(|name| folder.path().join(name)));
    let mut all =
        [&HALVES[..], &[INDEX, "additional_chat_templates", "config.json", "spiece.model"]]
            .concat();
    all.sort_unstable();
    assert_eq!(listed(folder.path()), all);
    assert_eq!(listed(&folder.path().join("additional_chat_templates")), ["rag.jinja"]);
}

#[test]
fn weights_alone_are_written_unless_copies_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let saved = loaded(modeldir_fixtures::model("llama")).save(folder.path()).unwrap();
    assert!(saved.beside.is_empty());
    assert_eq!(listed(folder.path()), ["model.safetensors"]);
}

#[test]
fn after_a_cast_the_configuration_names_the_type_that_most_elements_have() {
    let config = "{\n    \"torch_dtype\": \"float32\",\n    \"x\": NaN, \"text_config\": {\"dtype\": \"float32\"}\n}\n";
    let named = |dtype: &str| config.replace("float32", dtype);
    let folder = floats(config);
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let is_small = |name: &str| name == "small";
    for (plan, expected) in [
        (plan.clone(), config.to_owned()),
        (plan.cast(Float::F16), named("float16")),
        (plan.cast(Float::BF16), named("bfloat16")),
        (plan.cast_where(Float::F16, |tensor| is_small(tensor.name())), config.to_owned()),
        (plan.cast_where(Float::F16, |tensor| !is_small(tensor.name())), named("float16")),
    ] {
        let to = tempfile::tempdir().unwrap();
        let store = plan.load().unwrap();
        store.save_with(to.path(), &copying(1 << 20)).unwrap();
        assert_eq!(text(to.path(), "config.json"), expected);
    }
    let named_wrongly = floats("{\"dtype\": \"float64\"}");
    let to = tempfile::tempdir().unwrap();
    loaded(named_wrongly.path()).save_with(to.path(), &copying(1 << 20)).unwrap();
    assert_eq!(text(to.path(), "config.json"), "{\"dtype\": \"float64\"}");
}

#[test]
fn a_broken_configuration_is_copied_as_it_is_and_an_error_after_a_cast() {
    let folder = floats("{\"dtype\": \"float32\"");
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let to = tempfile::tempdir().unwrap();
    let store = |plan: &crate::LoadPlan| plan.load().unwrap();
    let error = store(&plan.cast(Float::F16)).save_with(to.path(), &copying(9)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Json(_)), "{error}");
    assert_eq!(error.path(), Some(&*folder.path().join("config.json")));
    assert_eq!(listed(to.path()), [""; 0]);
    store(&plan).save_with(to.path(), &copying(9)).unwrap();
    assert_eq!(text(to.path(), "config.json"), "{\"dtype\": \"float32\"");
}

#[test]
fn rejects_a_directory_with_such_files_and_leaves_it_alone() {
    let (_from, store) = model_with(&[("config.json", "new")]);
    for name in ["config.json", "tokenizer.model", "additional_chat_templates/x.jinja"] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("additional_chat_templates")).unwrap();
        touch(folder.path(), &[name, "README.md"]);
        let error = store.save_with(folder.path(), &copying(9)).unwrap_err();
        let ErrorKind::FilesExist { found } = error.kind() else { panic!("{error}") };
        assert_eq!((error.path(), &**found), (Some(folder.path()), &[PathBuf::from(name)][..]));
        assert_eq!(text(folder.path(), name), "old");
        assert!(!folder.path().join("model.safetensors").exists());
    }
}

#[test]
fn replacing_leaves_no_file_of_the_model_that_was_there() {
    let (_from, store) = model_with(&[("config.json", "new"), ("tokenizer.json", "new")]);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("additional_chat_templates")).unwrap();
    let stale = ["tokenizer.model", "chat_template.jinja", "additional_chat_templates/x.jinja"];
    touch(folder.path(), &stale);
    touch(folder.path(), &["model.safetensors", "config.json", "README.md", "x.bin"]);
    store.save_with(folder.path(), &replacing(1 << 20)).unwrap();
    let expected = [
        "README.md",
        "additional_chat_templates",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "x.bin",
    ];
    assert_eq!(listed(folder.path()), expected);
    assert_eq!(listed(&folder.path().join("additional_chat_templates")), [""; 0]);
    assert_eq!(text(folder.path(), "config.json"), "new");
}

#[test]
fn a_model_can_be_saved_where_it_is_with_its_configuration() {
    let folder = floats("{\"dtype\": \"float32\"}");
    let plan = ModelDir::open(folder.path()).unwrap().plan().cast(Float::F16);
    let store = plan.load().unwrap();
    store.save_with(folder.path(), &replacing(1 << 20)).unwrap();
    assert_eq!(text(folder.path(), "config.json"), "{\"dtype\": \"float16\"}");
    assert_eq!(loaded(folder.path()).get("small").unwrap().dtype(), Dtype::F16);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_never_written_through() {
    use std::os::unix::fs::symlink;
    let (from, _) = model_with(&[]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("blob"), "new").unwrap();
    symlink(outside.path().join("blob"), from.path().join("tokenizer.json")).unwrap();
    let store = loaded(from.path());
    let to = tempfile::tempdir().unwrap();
    let target = outside.path().join("other");
    fs::write(&target, "old").unwrap();
    symlink(&target, to.path().join("tokenizer.json")).unwrap();
    store.save_with(to.path(), &replacing(1 << 20)).unwrap();
    let copy = to.path().join("tokenizer.json");
    assert!(fs::symlink_metadata(&copy).unwrap().is_file());
    assert_eq!(
        (text(to.path(), "tokenizer.json"), fs::read_to_string(target).unwrap()),
        ("new".into(), "old".into())
    );

    // A folder that leads out of the directory is not written to.
    let templates = "additional_chat_templates";
    fs::create_dir(from.path().join(templates)).unwrap();
    fs::write(from.path().join(templates).join("x.jinja"), "{{ x }}").unwrap();
    fs::create_dir(outside.path().join("folder")).unwrap();
    symlink(outside.path().join("folder"), to.path().join(templates)).unwrap();
    let error = store.save_with(to.path(), &replacing(1 << 20)).unwrap_err();
    assert_eq!(error.path(), Some(&*to.path().join(templates)));
    assert_eq!(listed(&outside.path().join("folder")), [""; 0]);
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_is_an_error_that_names_it_and_nothing_changes() {
    let (from, store) = model_with(&[("config.json", "new")]);
    let dangling = from.path().join("tokenizer.json");
    std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
    let to = tempfile::tempdir().unwrap();
    touch(to.path(), &["config.json", "model.safetensors"]);
    let error = store.save_with(to.path(), &replacing(1 << 20)).unwrap_err();
    assert_eq!(error.path(), Some(&*dangling));
    assert_eq!(listed(to.path()), ["config.json", "model.safetensors"]);
    assert_eq!(text(to.path(), "config.json"), "old");
}

#[test]
fn a_save_that_breaks_off_never_mixes_weights_with_what_is_beside_others() {
    let old_beside = [("config.json", "old"), ("chat_template.jinja", "old")];
    let new_beside = [("config.json", "new"), ("additional_chat_templates/x.jinja", "new")];
    let (old_folder, old) = model_with(&old_beside);
    let new = tiny(2, 4);
    for max in [16, 4] {
        let made = tempfile::tempdir().unwrap();
        let saved = new.save_with(made.path(), &options(max)).unwrap();
        let name = |path: &PathBuf| PathBuf::from(path.file_name().unwrap());
        let shards: Vec<_> = saved.shards.iter().map(name).collect();
        let index = saved.index.as_ref().map(name);
        for taken in 0.. {
            let (dir, waiting) = (copied(old_folder.path()), copied(made.path()));
            fs::create_dir(waiting.path().join("additional_chat_templates")).unwrap();
            for (name, text) in new_beside {
                fs::write(waiting.path().join(name), text).unwrap();
            }
            let changes = Changes {
                stale: vec!["chat_template.jinja".into()],
                placed: new_beside.map(|(name, _)| name.into()).to_vec(),
            };
            let present = resolve::present(dir.path(), Family::Model).unwrap();
            let steps = commit::steps(present, &changes, &shards, index.as_deref());
            for step in steps.iter().take(taken) {
                commit::take(step, dir.path(), waiting.path()).unwrap();
            }
            let opened = ModelDir::open(dir.path()).and_then(|model| model.load());
            let there = |beside: &[(&str, &str)]| {
                beside.iter().all(|(name, text)| {
                    fs::read_to_string(dir.path().join(name)).is_ok_and(|found| found == *text)
                })
            };
            let Ok(opened) = opened else {
                assert!(taken < steps.len());
                continue;
            };
            if contents(&opened) == contents(&old) {
                assert!(there(&old_beside), "{taken}: {steps:?}");
            } else {
                assert!(contents(&opened) == contents(&new) && there(&new_beside), "{taken}");
                assert!(!dir.path().join("chat_template.jinja").exists());
            }
            if taken == steps.len() {
                assert!(contents(&opened) == contents(&new));
                break;
            }
        }
    }
}
