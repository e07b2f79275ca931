//! Folders of every kind, and the weights found in them.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tensorfile::{Limit, LimitOn, Remedy};

use super::{IgnoreReason, Resolved, classify};
use crate::json::JsonError;
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

#[test]
fn two_candidates_are_refused_and_both_are_named() {
    let diffusers = "diffusion_pytorch_model.safetensors";
    let cases: &[(&[&str], OpenOptions, &[&str])] = &[
        (&[MODEL, M1, M2], OpenOptions::default(), &[MODEL, M1, M2]),
        (&[MODEL, M2], OpenOptions::default(), &[MODEL, M2]),
        (
            &[M1, M2, "model_1-of-1.safetensors"],
            OpenOptions::default(),
            &[M1, M2, "model_1-of-1.safetensors"],
        ),
        (
            &[M1, M2, "model-00001-of-00003.safetensors"],
            OpenOptions::default(),
            &[M1, "model-00001-of-00003.safetensors", M2],
        ),
        (
            &["a.safetensors", "b.safetensors"],
            OpenOptions::default(),
            &["a.safetensors", "b.safetensors"],
        ),
        (
            &["a.safetensors", "b-1-of-1.safetensors"],
            OpenOptions::default(),
            &["a.safetensors", "b-1-of-1.safetensors"],
        ),
        (&[MODEL, diffusers], OpenOptions::default(), &[MODEL, diffusers]),
        (
            &["a.safetensors.index.json", "b.safetensors.index.json"],
            OpenOptions::default(),
            &["a.safetensors.index.json", "b.safetensors.index.json"],
        ),
        (
            &["model.safetensors.index.v.json", "model.v.safetensors.index.json"],
            variant("v"),
            &["model.safetensors.index.v.json", "model.v.safetensors.index.json"],
        ),
    ];
    for (files, options, expected) in cases {
        match resolve_with(files, options).map_err(Error::into_kind) {
            Err(ErrorKind::Ambiguous { mut candidates, .. }) => {
                candidates.sort();
                let mut expected = paths(expected);
                expected.sort();
                assert_eq!(candidates, expected, "{files:?}");
            }
            other => panic!("{files:?}: {other:?}"),
        }
    }
    let asked = resolve_with(&[MODEL, diffusers], &family(Family::Diffusers)).unwrap();
    assert_eq!(asked.shards, paths(&[diffusers]));
}

#[test]
fn an_index_with_missing_shards_beside_a_single_file_is_refused() {
    let error = open(&[INDEX, M1, MODEL]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::StaleIndex { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains(M2) && message.contains("and model.safetensors"), "{message}");
    assert!(!message.contains(M1));
}

#[test]
fn numbered_files_without_index_must_be_all_there() {
    match open(&[M2]).map_err(Error::into_kind) {
        Err(ErrorKind::MissingNumbered { found: 1, total: 2, missing, .. }) => {
            assert_eq!(missing, paths(&[M1]));
        }
        other => panic!("{other:?}"),
    }
    let other_stem = open(&["x-1-of-2.safetensors"]).map_err(Error::into_kind);
    assert!(matches!(other_stem, Err(ErrorKind::MissingNumbered { .. })), "{other_stem:?}");
}

#[test]
fn a_folder_without_weights_names_what_was_found() {
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &[]),
        (
            &[
                "config.json",
                "sub/model.safetensors",
                "empty/config.json",
                "._model.safetensors",
                "optimizer.safetensors",
            ],
            &[],
        ),
        (
            &["pytorch_model.bin", "tf_model.h5", "training_args.bin", "model.gguf"],
            &["model.gguf", "pytorch_model.bin", "tf_model.h5"],
        ),
        (&["model.safetensors.incomplete"], &["model.safetensors.incomplete"]),
    ];
    for (files, expected) in cases {
        for options in [OpenOptions::default(), variant("fp16")] {
            match resolve_with(files, &options).map_err(Error::into_kind) {
                Err(ErrorKind::NoWeights { found, folders, .. }) => {
                    assert_eq!(found, paths(expected));
                    let has_sub = files.contains(&"sub/model.safetensors");
                    assert_eq!(folders, paths(if has_sub { &["sub"] } else { &[] }));
                }
                other => panic!("{files:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_was_asked_for_and_is_not_there_is_an_error_that_names_the_rest() {
    let missing = resolve_with(&[MODEL, INDEX], &variant("fp16"));
    match missing.map_err(Error::into_kind) {
        Err(ErrorKind::NoVariant { variant, found, .. }) => {
            assert_eq!(&*variant, "fp16");
            assert_eq!(found, paths(&["model.safetensors.index.json", MODEL]));
        }
        other => panic!("{other:?}"),
    }
    let missing = resolve_with(&[MODEL], &family(Family::Adapter)).map_err(Error::into_kind);
    assert!(
        matches!(missing, Err(ErrorKind::NoFamily { stem: "adapter_model", .. })),
        "{missing:?}"
    );
    let index = "model.safetensors.index.fp16.json";
    for files in [
        &[index, "model.fp16-1-of-1.safetensors"][..],
        &[index, "model-1-of-1.fp16.safetensors"],
        &["model.fp16.safetensors", "model.fp32.safetensors"],
        &["model.fp16.safetensors"],
        &["model-00001-of-00001.fp16.safetensors"],
        &["diffusion_pytorch_model.fp16-00001-of-00001.safetensors"],
    ] {
        let refused = open(files).map_err(Error::into_kind);
        let Err(ErrorKind::OnlyVariants { found, .. }) = refused else {
            panic!("{files:?}: {refused:?}")
        };
        assert_eq!(found.len(), files.len());
    }
}

#[test]
fn choices_that_a_person_should_know_of_are_told() {
    let bare = "model.safetensors.index.json={\"a\": \"model.safetensors\"}";
    let lone = "x.safetensors.index.json={\"weight_map\":{\"a\":\"m.safetensors\"}}";
    let told = |files: &[&str], options: &OpenOptions| {
        let resolved = resolve_with(files, options).unwrap();
        (resolved.notes, resolved.remarks)
    };
    let broken = "mod\u{1b}el.safetensors.index.json={\"weight_map\":{\"a\":\"m.safetensors\"}}";
    let plain = OpenOptions::default();
    for (files, options, says) in [
        (&[M1, M2][..], &plain, "no index: 2 numbered files"),
        (&["x.safetensors"], &plain, "the only weight file"),
        (&[bare, MODEL], &plain, "bare weight map"),
        (&[lone, "m.safetensors"], &plain, "the only index"),
        (&[broken, "m.safetensors"], &plain, "mod\\u{1b}el.safetensors.index.json: is the only"),
        (&[INDEX, MODEL], &ignoring_the_index(), "model.safetensors.index.json: not read"),
    ] {
        let (notes, remarks) = told(files, options);
        assert!(notes.is_empty(), "{notes:?}");
        assert!(matches!(&*remarks, [remark] if remark.contains(says)), "{remarks:?}");
    }
    let (notes, remarks) = told(&[EMPTY_INDEX, MODEL], &plain);
    assert!(remarks.is_empty(), "{remarks:?}");
    let says = "names no tensor, model.safetensors is opened";
    assert!(matches!(&*notes, [note] if note.contains(says)), "{notes:?}");
    for files in [&[MODEL][..], &[INDEX, M1, M2]] {
        assert_eq!(told(files, &plain), (vec![], vec![]), "{files:?}");
    }
}

#[test]
fn listed_files_of_the_folder_may_be_given_by_their_whole_path() {
    let dir = folder(&[MODEL, "x.safetensors"]);
    let path = dir.path().join(MODEL);
    let options = Weights::Files(vec![path.clone()]).into();
    let resolved = resolve(dir.path(), &options, None).unwrap();
    assert_eq!(resolved.shards, [path]);
    assert_eq!(ignored(&resolved), [("x.safetensors", IgnoreReason::OtherSet)]);
}

#[test]
fn an_index_that_says_nothing_or_is_broken_is_refused() {
    let empty = open(&[EMPTY_INDEX, M1, M2]).map_err(Error::into_kind);
    assert!(matches!(empty, Err(ErrorKind::EmptyWeightMap)), "{empty:?}");
    let broken = open(&["model.safetensors.index.json={\"weight_map\": {\n=======", MODEL]);
    let broken = broken.map_err(Error::into_kind);
    let Err(ErrorKind::Json(JsonError::Syntax { line: 2, .. })) = broken else {
        panic!("{broken:?}")
    };
    let escape = "model.safetensors.index.json={\"weight_map\":{\"a\":\"../x.safetensors\"}}";
    let error = open(&[escape, MODEL]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ShardPath { .. }), "{error:?}");
    assert_eq!(error.tensor(), Some("a"));
    assert!(error.path().unwrap().ends_with("model.safetensors.index.json"), "{error:?}");
    let small = OpenOptions { max_index_bytes: 10, ..OpenOptions::default() };
    match resolve_with(&[INDEX, M1, M2], &small).map_err(Error::into_kind) {
        Err(ErrorKind::Limit(limit)) => {
            assert_eq!((limit.what, limit.limit), (LimitOn::FileBytes, 10));
            assert_eq!(limit.remedy, Some(Remedy::Raise("OpenOptions::max_index_bytes")));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn more_shards_than_may_be_are_refused_before_they_are_looked_for() {
    let three = OpenOptions { max_shards: 3, ..OpenOptions::default() };
    let index = |count: usize| {
        let row = |i| format!("\"{i}\":\"s-{i}.safetensors\"");
        let rows: Vec<_> = (0..count).map(row).collect();
        format!("model.safetensors.index.json={{\"weight_map\":{{{}}}}}", rows.join(","))
    };
    assert_eq!(resolve_with(&[&index(3)], &three).unwrap().shards.len(), 3);
    let refused = resolve_with(&[&index(4)], &three).unwrap_err();
    assert!(
        refused.to_string().ends_with(
            "model.safetensors.index.json: 4 shards, the limit is 3 \
             (OpenOptions::max_shards raises it)"
        ),
        "{refused}"
    );
    let shards = |found, limit| Limit {
        what: LimitOn::Shards,
        limit,
        found,
        remedy: Some(Remedy::Raise("OpenOptions::max_shards")),
    };
    assert!(matches!(refused.kind(), ErrorKind::Limit(limit) if *limit == shards(4, 3)));
    let listed = OpenOptions {
        weights: Weights::Files(paths(&["a.safetensors", "b.safetensors"])),
        max_shards: 1,
        ..OpenOptions::default()
    };
    let refused = resolve_with(&[MODEL], &listed).unwrap_err();
    assert!(
        matches!(refused.kind(), ErrorKind::Limit(limit) if *limit == shards(2, 1)),
        "{refused:?}"
    );
}

#[test]
fn listed_files_are_taken_as_they_are() {
    let listed = |files: &[&str]| Weights::Files(paths(files)).into();
    let files = [MODEL, M1, "sub/x.bin"];
    let resolved = resolve_with(&files, &listed(&["sub/x.bin", M1, M1])).unwrap();
    assert_eq!(resolved.shards, paths(&[M1, "sub/x.bin"]));
    assert_eq!(ignored(&resolved), [(MODEL, IgnoreReason::OtherSet)]);
}

#[test]
fn options_that_choose_among_what_is_chosen_are_refused_by_name() {
    let dir = folder(&[INDEX, M1, M2]);
    let listed = |files: &[&str]| OpenOptions::from(Weights::Files(paths(files)));
    let (file, index) = (M1, "model.safetensors.index.json");
    for (name, options, expected) in [
        (file, variant("fp16"), "Weights::Named::variant"),
        (file, family(Family::Model), "Weights::Named::family"),
        (file, listed(&[M1]), "Weights::Files"),
        (index, variant("fp16"), "Weights::Named::variant"),
        (index, family(Family::Model), "Weights::Named::family"),
        (index, listed(&[M1]), "Weights::Files"),
        (index, ignoring_the_index(), "Weights::Named::index"),
        ("", listed(&[]), "Weights::Files"),
    ] {
        match resolve(&dir.path().join(name), &options, None).map_err(Error::into_kind) {
            Err(ErrorKind::UnusableOption { option, .. }) => assert_eq!(option, expected, "{name}"),
            other => panic!("{name} {expected}: {other:?}"),
        }
    }
    let file = resolve(&dir.path().join(file), &ignoring_the_index(), None).unwrap();
    assert_eq!(file.shards, paths(&[M1]));
}

#[test]
fn the_configuration_may_name_the_weights() {
    let dir = folder(&[
        MODEL,
        "w/x.safetensors",
        "w/x.safetensors.index.json={\"weight_map\":{\"a\":\"w/x.safetensors\"}}",
    ]);
    let config = |value: &str| {
        let json = serde_json::json!({ "transformers_weights": value }).to_string();
        ModelConfig::from_json(dir.path().join("config.4.9.json"), json.as_bytes()).unwrap()
    };
    let configured = |value| resolve(dir.path(), &OpenOptions::default(), Some(&config(value)));
    let by_file = configured("./w/x.safetensors").unwrap();
    let by_index = configured("w/x.safetensors.index.json").unwrap();
    assert!(by_file.index.is_none() && by_index.index.is_some());
    assert_eq!(
        (&by_file.shards, &by_index.shards),
        (&paths(&["w/x.safetensors"]), &by_file.shards)
    );
    for value in ["../x.safetensors", "/x.safetensors", "x.bin", "", "../x.safetensors.index.json"]
    {
        let refused = configured(value).unwrap_err();
        let ErrorKind::WeightsPath { .. } = refused.kind() else { panic!("{value}: {refused:?}") };
        assert!(refused.path().unwrap().ends_with("config.4.9.json"), "{refused:?}");
    }
    assert_eq!(
        by_file.remarks,
        ["config.4.9.json: transformers_weights names w/x.safetensors".to_owned()]
    );
    let value = config("w/x.safetensors.index.json");
    let ignored = resolve(dir.path(), &ignoring_the_index(), Some(&value)).unwrap();
    assert_eq!(ignored.shards, paths(&[MODEL]));
    assert!(ignored.remarks.iter().any(|remark| remark.ends_with("index.json: not read")));
    let asked = resolve(dir.path(), &family(Family::Model), Some(&config("w/x.safetensors")));
    let asked = asked.unwrap();
    assert_eq!(asked.shards, paths(&[MODEL]));
}

#[test]
fn a_path_to_a_file_opens_that_file() {
    let dir = folder(&[
        INDEX,
        M1,
        M2,
        "blob",
        "x.bin",
        "other.json={\"weight_map\":{\"a\":\"./z.safetensors\"}}",
    ]);
    let at = |name: &str| resolve(&dir.path().join(name), &OpenOptions::default(), None);
    for name in ["blob", M2] {
        let resolved = at(name).unwrap();
        assert_eq!((&*resolved.root, resolved.shards), (dir.path(), paths(&[name])));
        assert!(resolved.ignored.is_empty());
        assert_eq!(resolved.file_names.len(), 6);
    }
    let resolved = at("model.safetensors.index.json").unwrap();
    assert_eq!((&*resolved.root, resolved.shards), (dir.path(), paths(&[M1, M2])));
    assert_eq!(at("other.json").unwrap().shards, paths(&["z.safetensors"]));
    let other = at("x.bin").unwrap_err();
    assert!(
        other.to_string().ends_with("x.bin: weights of PyTorch; only safetensors files are read")
    );
    let missing = file_kind(at("nothing"));
    assert!(matches!(missing, tensorfile::ErrorKind::NotFound), "{missing:?}");
}

#[test]
fn a_folder_of_the_hub_cache_names_what_it_holds() {
    let dir = folder(&[
        "models--org--name/snapshots/0123abcd/model.safetensors",
        "models--org--name/snapshots/00aa/model.safetensors",
        "models--org--name/refs/main=0123abcd",
        "models--b/snapshots/1/x",
        "version.txt",
    ]);
    let at = |name: &str| resolve(&dir.path().join(name), &OpenOptions::default(), None);
    match at("models--org--name").map_err(Error::into_kind) {
        Err(ErrorKind::HubRepository { snapshots, .. }) => {
            assert_eq!(snapshots, paths(&["snapshots/00aa", "snapshots/0123abcd"]));
        }
        other => panic!("{other:?}"),
    }
    let refused = at("models--b").map_err(Error::into_kind);
    assert!(matches!(refused, Err(ErrorKind::HubRepository { .. })), "{refused:?}");
    match at("").map_err(Error::into_kind) {
        Err(ErrorKind::HubCacheRoot { repositories, .. }) => {
            assert_eq!(repositories, paths(&["models--b", "models--org--name"]));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(at("models--org--name/snapshots/00aa").unwrap().shards, paths(&[MODEL]));
}

#[test]
fn a_pipeline_names_its_models() {
    let manifest = "model_index.json={\"_class_name\": \"X\", \"unet\": [\"diffusers\", \"U\"], \
        \"scheduler\": [\"diffusers\", \"S\"], \"safety\": [null, null], \"flag\": true}";
    let parts = [
        "unet/config.json",
        "scheduler/scheduler_config.json",
        "safety/config.json",
        "other/config.json",
    ];
    let with = |first: &str, more: &[&str]| open(&[&[first], &parts[..], more].concat());
    for more in [&[][..], &["v1-5-pruned.safetensors"], &[MODEL]] {
        match with(manifest, more).map_err(Error::into_kind) {
            Err(ErrorKind::Pipeline { components, .. }) => assert_eq!(components, paths(&["unet"])),
            other => panic!("{other:?}"),
        }
    }
    match with("model_index.json={", &[]).map_err(Error::into_kind) {
        Err(ErrorKind::Pipeline { components, .. }) => {
            assert_eq!(components, paths(&["other", "safety", "unet"]));
        }
        other => panic!("{other:?}"),
    }
    let flat = open(&[manifest, "diffusion_pytorch_model.safetensors"]).unwrap();
    assert_eq!(flat.family, Some(Family::Diffusers));
    let files = [&[manifest, MODEL], &parts[..]].concat();
    assert!(resolve_with(&files, &family(Family::Model)).is_ok());
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_dangling_ones_are_kept_for_the_opening() {
    use std::os::unix::fs::symlink;

    let dir = folder(&["blobs/abc", "snapshots/1/config.json"]);
    let snapshot = dir.path().join("snapshots/1");
    symlink("../../blobs/abc", snapshot.join(M1)).unwrap();
    symlink("../../blobs/feedface", snapshot.join(M2)).unwrap();
    let opened = |root: &Path| resolve(root, &OpenOptions::default(), None);
    assert_eq!(opened(&snapshot).unwrap().shards, paths(&[M1, M2]));

    symlink("gone", dir.path().join("lost")).unwrap();
    match file_kind(opened(&dir.path().join("lost"))) {
        tensorfile::ErrorKind::DanglingLink { target } => assert_eq!(target, Path::new("gone")),
        other => panic!("{other:?}"),
    }
    // A dangling single file is no rival of an index with missing shards.
    let (name, text) = INDEX.split_once('=').unwrap();
    fs::write(snapshot.join(name), text).unwrap();
    symlink("../../blobs/gone", snapshot.join(MODEL)).unwrap();
    assert!(opened(&snapshot).unwrap().index.is_some());
}

#[cfg(unix)]
#[test]
fn a_socket_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let refused = file_kind(resolve(&path, &OpenOptions::default(), None));
    assert!(matches!(refused, tensorfile::ErrorKind::NotARegularFile { .. }), "{refused:?}");
    assert_eq!(resolve(dir.path(), &OpenOptions::default(), None).unwrap().shards, paths(&[MODEL]));
}
