//! Paths of files, hub caches, pipelines, links and sockets.

use std::fs;
use std::path::Path;

use super::{INDEX, M1, M2, MODEL, family, file_kind, folder, open, paths, resolve, resolve_with};
use crate::open_options::Family;
use crate::{Error, ErrorKind, OpenOptions};

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

#[test]
fn what_is_no_path_is_told_from_a_path_to_nothing() {
    use crate::error::Given;

    let at = |text: &str| resolve(Path::new(text), &OpenOptions::default(), None).unwrap_err();
    for text in ["s3://bucket/model", "~/model", "no-such-org/Example-1B"] {
        let error = at(text);
        assert!(matches!(error.kind(), ErrorKind::NotLocal(_)), "{error:?}");
        assert_eq!(error.path(), Some(Path::new(text)));
    }
    let file = at("file:///no/such/model").into_kind();
    let ErrorKind::NotLocal(Given::Address { path: Some(path), .. }) = file else {
        panic!("{file:?}")
    };
    assert_eq!(path, Path::new("/no/such/model"));
    let dir = folder(&["config.json={}", "tokenizer.json={}"]);
    for name in ["config.json", "tokenizer.json"] {
        let path = dir.path().join(name);
        let error = resolve(&path, &OpenOptions::default(), None).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BesideWeights), "{error:?}");
    }
}
