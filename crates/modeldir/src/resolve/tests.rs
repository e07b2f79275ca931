//! Folders of every kind, and the weights found in them.

mod chosen;
mod places;
mod refused;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{IgnoreReason, Resolved, classify};
use crate::open_options::{Family, Weights};
use crate::{Error, ErrorKind, ModelConfig, OpenOptions, Result};

/// A folder with these files. The text after `=` in a name is the content of the file.
fn folder(files: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        let (name, text) = file.split_once('=').unwrap_or((file, ""));
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if !name.ends_with('/') {
            fs::write(path, text).unwrap();
        }
    }
    dir
}

fn resolve(path: &Path, options: &OpenOptions, config: Option<&ModelConfig>) -> Result<Resolved> {
    super::resolve(path, classify(path)?, options, config)
}

/// The error of an unusable path.
fn file_kind(refused: Result<Resolved>) -> tensorfile::ErrorKind {
    match refused.map_err(Error::into_kind) {
        Err(ErrorKind::File(kind)) => kind,
        other => panic!("{other:?}"),
    }
}

fn resolve_with(files: &[&str], options: &OpenOptions) -> Result<Resolved> {
    resolve(folder(files).path(), options, None)
}

fn open(files: &[&str]) -> Result<Resolved> {
    resolve_with(files, &OpenOptions::default())
}

fn variant(name: &str) -> OpenOptions {
    Weights::variant(name).into()
}

fn family(family: Family) -> OpenOptions {
    Weights::family(family).into()
}

fn ignoring_the_index() -> OpenOptions {
    Weights::without_index().into()
}

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

/// Name and reason of each ignored file.
fn ignored(resolved: &Resolved) -> Vec<(&str, IgnoreReason)> {
    resolved.ignored.iter().map(|file| (file.path.to_str().unwrap(), file.reason)).collect()
}

const M1: &str = "model-00001-of-00002.safetensors";
const M2: &str = "model-00002-of-00002.safetensors";
const MODEL: &str = "model.safetensors";
const INDEX: &str = concat!(
    "model.safetensors.index.json={\"weight_map\": {",
    "\"b\": \"model-00002-of-00002.safetensors\", \"a\": \"model-00001-of-00002.safetensors\"}}"
);
const EMPTY_INDEX: &str = "model.safetensors.index.json={\"weight_map\": {}}";

fn finds(files: &[&str], options: &OpenOptions, family: Option<Family>, expected: &[&str]) {
    let resolved = resolve_with(files, options).unwrap_or_else(|e| panic!("{files:?}: {e}"));
    assert_eq!(resolved.shards, paths(expected), "{files:?}");
    assert_eq!(resolved.family, family, "{files:?}");
}

#[test]
fn the_known_sets_are_found_by_name() {
    const DIFFUSERS: &str = "diffusion_pytorch_model.safetensors";
    const CONSOLIDATED: &str = "consolidated-00001-of-00001.safetensors";
    const ADAPTER: &str = "adapter_model.safetensors";
    let self_index = "model.safetensors.index.json={\"weight_map\":{\"a\":\"model.safetensors\"}}";
    for (files, family, expected) in [
        (&[MODEL, "config.json"][..], Family::Model, &[MODEL][..]),
        (&[INDEX, M1, M2], Family::Model, &[M1, M2]),
        (&[INDEX, M1, M2, MODEL], Family::Model, &[M1, M2]),
        (&[M2, M1], Family::Model, &[M1, M2]),
        (&[EMPTY_INDEX, MODEL], Family::Model, &[MODEL]),
        (&[self_index, MODEL], Family::Model, &[MODEL]),
        (&[DIFFUSERS], Family::Diffusers, &[DIFFUSERS]),
        (&[CONSOLIDATED, "params.json"], Family::Consolidated, &[CONSOLIDATED]),
        (&[CONSOLIDATED, MODEL], Family::Model, &[MODEL]),
        (&[ADAPTER, "adapter_config.json"], Family::Adapter, &[ADAPTER]),
        (&[ADAPTER, MODEL], Family::Model, &[MODEL]),
    ] {
        finds(files, &OpenOptions::default(), Some(family), expected);
    }
    finds(
        &[CONSOLIDATED, MODEL],
        &family(Family::Consolidated),
        Some(Family::Consolidated),
        &[CONSOLIDATED],
    );
}

#[test]
fn other_names_are_found_where_there_is_one_set() {
    let index = "x.safetensors.index.json={\"weight_map\":{\"a\":\"1.safetensors\"}}";
    for (files, expected) in [
        (&["gptq-4bit-128g.safetensors", "config.json"][..], &["gptq-4bit-128g.safetensors"][..]),
        (
            &["x_1-of-2.safetensors", "x_2-of-2.safetensors"],
            &["x_1-of-2.safetensors", "x_2-of-2.safetensors"],
        ),
        (&[index, "2.safetensors", "1.safetensors"], &["1.safetensors"]),
    ] {
        finds(files, &OpenOptions::default(), None, expected);
    }
}

#[test]
fn an_ignored_index_leaves_the_single_file_or_the_numbered_ones() {
    for (files, expected) in [
        (&[INDEX, M1, M2, MODEL][..], &[MODEL][..]),
        (&[INDEX, M1, MODEL], &[MODEL]),
        (&[INDEX, M1, M2], &[M1, M2]),
        (&["model.safetensors.index.json=broken", MODEL], &[MODEL]),
    ] {
        finds(files, &ignoring_the_index(), Some(Family::Model), expected);
    }
}

#[test]
fn a_variant_is_opened_only_if_asked_for_and_in_every_spelling() {
    const SHARD: &str = "model.fp16-1-of-1.safetensors";
    const LATE: &str = "model-00001-of-00001.fp16.safetensors";
    for name in [
        "model.safetensors.index.fp16.json",
        "model.safetensors.fp16.index.json",
        "model.fp16.safetensors.index.json",
    ] {
        let index = format!("{name}={{\"weight_map\":{{\"a\":\"{SHARD}\"}}}}");
        finds(&[&index, SHARD, MODEL], &variant("fp16"), Some(Family::Model), &[SHARD]);
        finds(&[&index, SHARD, MODEL], &OpenOptions::default(), Some(Family::Model), &[MODEL]);
    }
    let single = "model.fp16.safetensors";
    for (files, expected) in [
        (&[MODEL, single][..], single),
        (&[INDEX, M1, M2, LATE], LATE),
        (&[INDEX, M1, M2, SHARD], SHARD),
    ] {
        finds(files, &variant("fp16"), Some(Family::Model), &[expected]);
    }
}

#[test]
fn an_index_is_used_only_where_it_decides() {
    let used = |files: &[&str], options: &OpenOptions| {
        resolve_with(files, options).unwrap().index.map(|index| index.map.iter().len())
    };
    assert_eq!(used(&[INDEX, M1, M2], &OpenOptions::default()), Some(2));
    assert_eq!(used(&[INDEX, M1], &OpenOptions::default()), Some(2));
    assert_eq!(used(&[INDEX, M1, M2], &ignoring_the_index()), None);
    assert_eq!(used(&[EMPTY_INDEX, MODEL], &OpenOptions::default()), None);
}

#[test]
fn shards_may_lie_in_folders_and_their_folders_are_not_ignored() {
    let index = "model.safetensors.index.json={\"weight_map\":{\"a\":\"./w/1.safetensors\"}}";
    let resolved = open(&[index, "w/1.safetensors", "original/1.safetensors"]).unwrap();
    assert_eq!(resolved.shards, paths(&["w/1.safetensors"]));
    assert_eq!(ignored(&resolved), [("original", IgnoreReason::Folder)]);
}

#[test]
fn what_is_never_weights_is_ignored_with_its_reason() {
    let files = [
        INDEX,
        M1,
        M2,
        "model-00003-of-00003.safetensors",
        "._model.safetensors",
        "adapter_model.safetensors",
        "optimizer.safetensors",
        "pytorch_model.bin",
        "model.safetensors.lock",
        "x.safetensors.part_aa",
        "model.safetensors.index.fp16.json",
        "config.json",
        "README.md",
        ".cache/x",
        "original/consolidated.00.pth",
        "training_args.bin",
    ];
    let expected = [
        ("._model.safetensors", IgnoreReason::Hidden),
        ("adapter_model.safetensors", IgnoreReason::NotInIndex),
        ("model-00003-of-00003.safetensors", IgnoreReason::NotInIndex),
        ("model.safetensors.index.fp16.json", IgnoreReason::UnusedIndex),
        ("model.safetensors.lock", IgnoreReason::Partial),
        ("optimizer.safetensors", IgnoreReason::Training),
        ("original", IgnoreReason::Folder),
        ("pytorch_model.bin", IgnoreReason::OtherFormat),
        ("training_args.bin", IgnoreReason::Training),
        ("x.safetensors.part_aa", IgnoreReason::Partial),
    ];
    assert_eq!(ignored(&open(&files).unwrap()), expected);
    let alone = open(&["._a.safetensors", "a.safetensors", "optimizer.safetensors"]).unwrap();
    assert_eq!(alone.shards, paths(&["a.safetensors"]));
}
