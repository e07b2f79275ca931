//! Tests of saving: the directory is opened again, also after an interruption at each step.

mod beside;
mod refused;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tensorfile::{Dtype, Metadata, TensorFile, Writer};

use super::commit::{self, Changes};
use super::{Existing, SaveOptions};
use crate::open_options::Family;
use crate::resolve;
use crate::weights::alias::AliasRule;
use crate::{IndexedTensor, ModelDir, TensorStore};

fn options(max_shard_bytes: u64) -> SaveOptions {
    SaveOptions { max_shard_bytes, ..SaveOptions::default() }
}

fn replacing(max_shard_bytes: u64) -> SaveOptions {
    SaveOptions { existing: Existing::Replace, ..options(max_shard_bytes) }
}

fn loaded(path: impl AsRef<Path>) -> TensorStore {
    ModelDir::open(path).unwrap().load().unwrap()
}

fn model(name: &str) -> TensorStore {
    loaded(modeldir_fixtures::model(name))
}

/// A store of tensors `a`, `b` and so on, of four bytes each.
fn tiny(fill: u8, tensors: usize) -> TensorStore {
    let folder = tempfile::tempdir().unwrap();
    let bytes = [fill; 4];
    let mut writer = Writer::new();
    for name in ["a", "b", "c", "d"].into_iter().take(tensors) {
        writer.add(name, Dtype::U8, &[4], &bytes).unwrap();
    }
    let path = folder.path().join("x.safetensors");
    writer.save(&path).unwrap();
    loaded(path)
}

fn contents(store: &TensorStore) -> Vec<(&str, Dtype, &[usize], &[u8])> {
    store.iter().map(|(name, t)| (name, t.dtype(), t.shape(), t.bytes())).collect()
}

/// The names in a folder, in order.
fn listed(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn copied(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in listed(folder) {
        fs::copy(folder.join(&name), copy.path().join(&name)).unwrap();
    }
    copy
}

fn touch(folder: &Path, names: &[&str]) {
    for name in names {
        fs::write(folder.join(name), "old").unwrap();
    }
}

const INDEX: &str = "model.safetensors.index.json";
const HALVES: [&str; 2] = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];

#[test]
fn what_is_saved_is_what_is_loaded_again() {
    for name in ["llama", "gpt2", "t5", "gpt-oss", "bert"] {
        let store = model(name);
        for max in [60_000, 5_000_000_000] {
            let folder = tempfile::tempdir().unwrap();
            let saved = store.save_with(folder.path(), &options(max)).unwrap();
            assert_eq!(saved.index.is_some(), saved.shards.len() > 1);
            let opened = ModelDir::open(folder.path()).unwrap();
            assert!(opened.report().ignored_files.is_empty());
            assert_eq!(opened.shards().len(), saved.shards.len());
            assert!(saved.shards.iter().all(|shard| shard.is_file()), "{saved:?}");
            let again = opened.load().unwrap();
            assert!(contents(&again) == contents(&store), "{name} {max}");
            let names = |store: &TensorStore| -> Vec<(String, String)> {
                let aliases = store.aliases();
                aliases.map(|alias| (alias.name.clone(), alias.target.clone())).collect()
            };
            assert_eq!(names(&again), names(&store), "{name} {max}");
        }
    }
}

#[test]
fn the_index_is_that_of_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    model("gpt2").save_with(folder.path(), &options(200_000)).unwrap();
    // The output of split_state_dict_into_shards_factory of huggingface_hub 2.4 for these tensors
    // in name order, written by json.dump(index, file, indent=2).
    let in_layer = [
        "attn.c_attn.bias",
        "attn.c_attn.weight",
        "attn.c_proj.bias",
        "attn.c_proj.weight",
        "ln_1.bias",
        "ln_1.weight",
        "ln_2.bias",
        "ln_2.weight",
        "mlp.c_fc.bias",
        "mlp.c_fc.weight",
        "mlp.c_proj.bias",
        "mlp.c_proj.weight",
    ];
    let in_layers = (0..3).flat_map(|i| in_layer.map(|name| (i + 1, format!("h.{i}.{name}"))));
    let last = ["ln_f.bias", "ln_f.weight", "wpe.weight", "wte.weight"];
    let last = last.map(|name| (4, name.to_owned()));
    let lines: Vec<_> = in_layers
        .chain(last)
        .map(|(shard, name)| {
            format!("    \"transformer.{name}\": \"model-{shard:05}-of-00004.safetensors\"")
        })
        .collect();
    let expected = format!(
        "{{\n  \"metadata\": {{\n    \"total_size\": 698624,\n    \
         \"lm_head.weight\": \"transformer.wte.weight\"\n  }},\n  \
         \"weight_map\": {{\n{}\n  }}\n}}",
        lines.join(",\n")
    );
    assert_eq!(fs::read_to_string(folder.path().join(INDEX)).unwrap(), expected);
}

#[test]
fn a_tensor_that_is_too_large_has_a_shard_of_its_own_before_the_open_one() {
    let folder = tempfile::tempdir().unwrap();
    model("llama").save_with(folder.path(), &options(60_000)).unwrap();
    let opened = ModelDir::open(folder.path()).unwrap();
    assert_eq!(opened.shards().len(), 8);
    // As in the reference: eight shards, with these tensors in the third.
    let third = opened.tensors().filter(|tensor| tensor.shard().position() == 2);
    let third: Vec<_> = third.map(IndexedTensor::name).collect();
    assert_eq!(
        third,
        ["model.layers.0.mlp.down_proj.weight", "model.layers.0.mlp.gate_proj.weight"]
    );
    let embedding = opened.info("model.embed_tokens.weight").unwrap();
    assert_eq!(embedding.shard().position(), 1);
    let size = opened.report().total_size.as_ref().unwrap();
    assert_eq!((size.declared_bytes, size.tensor_bytes), (Some(359_296), 359_296));
}

#[test]
fn aliases_and_metadata_go_where_the_reference_has_them() {
    let store = model("gpt2");
    let folder = tempfile::tempdir().unwrap();
    let metadata = BTreeMap::from([("note".to_owned(), "x".to_owned())]);
    let with_note = |max| SaveOptions { metadata: metadata.clone(), ..replacing(max) };

    store.save_with(folder.path(), &with_note(1 << 30)).unwrap();
    let file = TensorFile::open(folder.path().join("model.safetensors")).unwrap();
    let expected = [("format", "pt"), ("lm_head.weight", "transformer.wte.weight"), ("note", "x")];
    let expected = BTreeMap::from(expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!(file.metadata().map(Metadata::to_map), Some(expected));

    let saved = store.save_with(folder.path(), &with_note(200_000)).unwrap();
    for shard in &saved.shards {
        let format = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
        let file = TensorFile::open(shard).unwrap();
        assert_eq!(file.metadata().map(Metadata::to_map), Some(format));
    }
    let index = fs::read_to_string(saved.index.unwrap()).unwrap();
    assert!(index.contains("\"note\": \"x\"\n  },"), "{index}");
    let again = loaded(folder.path());
    assert_eq!(again.aliases().next().unwrap().rule, AliasRule::Metadata);
}

#[test]
fn the_format_is_that_of_the_caller_in_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let metadata = BTreeMap::from([("format".to_owned(), "np".to_owned())]);
    let saved =
        tiny(1, 2).save_with(folder.path(), &SaveOptions { metadata, ..options(4) }).unwrap();
    for shard in saved.shards {
        let file = TensorFile::open(shard).unwrap();
        assert_eq!(file.metadata().unwrap().get("format"), Some("np"));
    }
    assert!(!fs::read_to_string(folder.path().join(INDEX)).unwrap().contains("format"));
}

#[test]
fn a_store_without_tensors_is_one_empty_file() {
    let folder = tempfile::tempdir().unwrap();
    let saved = tiny(1, 0).save_with(folder.path().join("new/dir"), &options(4)).unwrap();
    assert_eq!((saved.shards.len(), saved.index, saved.byte_len), (1, None, 0));
    assert!(loaded(folder.path().join("new/dir")).is_empty());
}

#[test]
fn replacing_takes_what_an_earlier_save_left_and_nothing_else() {
    let kept = [
        "adapter_model.safetensors",
        "config.json",
        "model.fp16.safetensors",
        "model.safetensors.backup",
        "pytorch_model.bin",
    ];
    let stale = [
        INDEX,
        "model.safetensors",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model-00003-of-00009.safetensors",
    ];
    for (max, written) in
        [(1 << 30, vec!["model.safetensors"]), (8, [&HALVES[..], &[INDEX]].concat())]
    {
        let folder = tempfile::tempdir().unwrap();
        touch(folder.path(), &kept);
        touch(folder.path(), &stale);
        let store = tiny(2, 4);
        store.save_with(folder.path(), &replacing(max)).unwrap();
        let mut expected = [&kept[..], &written].concat();
        expected.sort_unstable();
        assert_eq!(listed(folder.path()), expected);
        assert!(contents(&loaded(folder.path())) == contents(&store));
    }
}

#[test]
fn a_save_that_breaks_off_never_mixes_two_models() {
    let (old, new) = (tiny(1, 4), tiny(2, 4));
    // With these limits, each store becomes one, two or four files.
    let saved = |store: &TensorStore| {
        [16, 8, 4].map(|max| {
            let folder = tempfile::tempdir().unwrap();
            let saved = store.save_with(folder.path(), &options(max)).unwrap();
            (folder, saved)
        })
    };
    let (olds, news) = (saved(&old), saved(&new));
    for ((old_folder, _), (new_folder, saved)) in
        olds.iter().flat_map(|old| news.iter().map(move |new| (old, new)))
    {
        let name = |path: &PathBuf| PathBuf::from(path.file_name().unwrap());
        let shards: Vec<_> = saved.shards.iter().map(name).collect();
        let index = saved.index.as_ref().map(name);
        for taken in 0.. {
            let (dir, waiting) = (copied(old_folder.path()), copied(new_folder.path()));
            let present = resolve::present(dir.path(), Family::Model).unwrap();
            let steps = commit::steps(present, &Changes::default(), &shards, index.as_deref());
            for step in steps.iter().take(taken) {
                commit::take(step, dir.path(), waiting.path()).unwrap();
            }
            let opened = ModelDir::open(dir.path()).and_then(|model| model.load());
            let found = opened.as_ref().map(contents);
            let is_old = found.as_ref().is_ok_and(|found| *found == contents(&old));
            let is_new = found.as_ref().is_ok_and(|found| *found == contents(&new));
            assert!(is_old || is_new || found.is_err(), "{taken}: {steps:?}");
            assert!(taken > 0 || is_old);
            if taken == steps.len() {
                assert!(is_new);
                assert_eq!(listed(waiting.path()), [""; 0]);
                break;
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn links_are_replaced_and_what_they_lead_to_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, blob) = (folder.path().join("snapshot"), folder.path().join("blob"));
    fs::create_dir(&dir).unwrap();
    fs::write(&blob, "old").unwrap();
    for name in [HALVES[0], "model.safetensors"] {
        std::os::unix::fs::symlink("../blob", dir.join(name)).unwrap();
    }
    tiny(3, 2).save_with(&dir, &replacing(4)).unwrap();
    assert_eq!(fs::read(&blob).unwrap(), b"old");
    assert_eq!(listed(&dir), [HALVES[0], HALVES[1], INDEX]);
}
