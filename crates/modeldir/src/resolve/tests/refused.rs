//! Folders whose weights are ambiguous, incomplete or absent.

use tensorfile::{Limit, LimitOn, Remedy};

use super::{EMPTY_INDEX, INDEX, M1, M2, MODEL, family, open, paths, resolve_with, variant};
use crate::json::JsonError;
use crate::open_options::{Family, Weights};
use crate::{Error, ErrorKind, OpenOptions};

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
