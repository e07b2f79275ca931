//! Models in the hub's cache: from a repository and a revision to tensors, by links to blobs.

use std::path::Path;

use modeldir::{ErrorKind, ModelDir, hub};
use modeldir_fixtures::{Entry, ShardedModel, Tensor as Made, Tree, sha256_hex, shard_name};
use tempfile::TempDir;

use crate::alone::{is_alone, run_alone};

/// Two revisions, by their commits.
const COMMITS: [&str; 2] =
    ["11aa00000000000000000000000000000000aa11", "22bb00000000000000000000000000000000bb22"];

/// The revision `salt` of a model of two shards.
fn revision(salt: &str) -> ShardedModel {
    ShardedModel::new(2)
        .tensor(1, Made::tagged(salt, "a", "F32", &[8]))
        .tensor(2, Made::tagged(salt, "b", "F32", &[8]))
        .file("config.json", r#"{"hidden_size": 8}"#)
}

/// A cache as the hub's tools write it: blobs by digest, snapshots of links to them, refs.
fn cache() -> TempDir {
    let mut tree = Tree::new();
    let repository = "models--org--name";
    for (commit, salt) in COMMITS.into_iter().zip(["old", "new"]) {
        for (path, entry) in revision(salt).files().iter() {
            let Entry::File(bytes) = entry else { unreachable!("the model has files only") };
            let blob = sha256_hex(bytes);
            tree.put(&format!("{repository}/blobs/{blob}"), bytes.as_slice());
            let link = format!("{repository}/snapshots/{commit}/{path}");
            tree.link(&link, &format!("../../blobs/{blob}"));
        }
    }
    for (name, commit) in
        [("main", COMMITS[1]), ("refs/pr/1", COMMITS[0]), ("release/v1", COMMITS[0])]
    {
        tree.put(&format!("{repository}/refs/{name}"), commit);
    }
    tree.put(&format!("{repository}/refs/pruned"), "33cc00000000000000000000000000000000cc33");
    let folder = tempfile::tempdir().unwrap();
    tree.write(folder.path()).unwrap();
    folder
}

/// Opens a snapshot and loads what the revision `salt` holds.
fn assert_loads(snapshot: &Path, salt: &str) {
    let model = ModelDir::open(snapshot).unwrap();
    assert_eq!(model.config().unwrap().hidden_size(), Some(8));
    let store = model.load().unwrap();
    for name in ["a", "b"] {
        let wanted = Made::tagged(salt, name, "F32", &[8]);
        assert_eq!(store.get(name).unwrap().bytes(), wanted.data, "{name} of {salt}");
    }
}

#[test]
fn branches_pull_requests_tags_and_commits_open_and_load() {
    let cache = cache();
    let revisions = [
        ("main", "new"),
        ("refs/pr/1", "old"),
        ("release/v1", "old"),
        (COMMITS[0], "old"),
        (COMMITS[1], "new"),
    ];
    for (revision, salt) in revisions {
        assert_loads(&hub::snapshot_in(&cache, "org/name", revision).unwrap(), salt);
    }
}

#[test]
fn a_revision_that_is_not_there_is_refused_and_those_there_are_named() {
    let cache = cache();
    for revision in ["dev", "release", "release/v2", "pruned", &COMMITS[0][..8]] {
        let error = hub::snapshot_in(&cache, "org/name", revision).unwrap_err();
        let ErrorKind::NoSnapshot { snapshots, .. } = error.kind() else { panic!("{error}") };
        assert!(snapshots.iter().eq(COMMITS.iter().map(Path::new)), "{error}");
        assert!(error.to_string().contains(revision), "{error}");
    }
    let error = hub::snapshot_in(&cache, "org/other", "main").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoSnapshot { .. }), "{error}");
    let error = hub::snapshot_in(&cache, "org/name", "../main").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::HubName { .. }), "{error}");
}

#[test]
fn a_blob_that_was_pruned_is_a_missing_shard() {
    let cache = cache();
    let blob = sha256_hex(&revision("new").shard_bytes(2));
    std::fs::remove_file(cache.path().join("models--org--name/blobs").join(&blob)).unwrap();
    let snapshot = hub::snapshot_in(&cache, "org/name", "main").unwrap();
    let error = ModelDir::open(snapshot).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Incomplete { .. }), "{error}");
    for said in [&shard_name(2, 2), &blob] {
        assert!(error.to_string().contains(said), "{error}");
    }
    assert_loads(&hub::snapshot_in(&cache, "org/name", "refs/pr/1").unwrap(), "old");
}

#[test]
fn the_environment_says_where_the_cache_is() {
    if is_alone() {
        assert_loads(&hub::snapshot("org/name", "main").unwrap(), "new");
        let error = hub::snapshot("org/name", "dev").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NoSnapshot { .. }), "{error}");
        return;
    }
    let cache = cache();
    let this = "hub::the_environment_says_where_the_cache_is";
    run_alone(this, &[("HF_HUB_CACHE", cache.path().as_os_str())]);
}
