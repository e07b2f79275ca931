//! Models in the local cache of the Hugging Face hub. Never uses the network.

mod cache_dir;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use tensorfile::SourceFile;

use crate::{ErrorKind, Result};

/// A commit hash has 40 or 64 digits; a ref file longer than this holds something else.
const MAX_REF_BYTES: u64 = 1024;

/// Returns the folder of the hub cache, whether or not it exists.
///
/// The first of these that is set: `HF_HUB_CACHE`, `HUGGINGFACE_HUB_CACHE`, `HF_HOME` with `hub`
/// appended, `XDG_CACHE_HOME` with `huggingface/hub` appended; else `~/.cache/huggingface/hub`.
/// `~`, `$NAME` and `${NAME}` in their values are expanded. Empty means unset.
///
/// # Errors
///
/// [`ErrorKind::NoHubCache`] if none of the variables is set and there is no home directory.
pub fn cache_dir() -> Result<PathBuf> {
    cache_dir::from_variables(&|name| env::var_os(name))
}

/// Returns the folder of a cached model at a revision; it can be opened as a model directory.
///
/// `repository` is `org/name` or `name`. `revision` is a branch, a tag, a ref such as `refs/pr/1`,
/// or a whole commit hash; most callers want `main`. The folder may be incomplete: the cache holds
/// only downloaded files.
///
/// # Errors
///
/// As [`cache_dir`] and [`snapshot_in`].
pub fn snapshot(repository: &str, revision: &str) -> Result<PathBuf> {
    snapshot_in(cache_dir()?, repository, revision)
}

/// As [`snapshot`], in the cache at `cache`.
///
/// # Errors
///
/// [`ErrorKind::HubName`] if `repository` or `revision` is not a valid name;
/// [`ErrorKind::NoSnapshot`] if the cache lacks exactly this revision. Another snapshot is never
/// returned in its place.
pub fn snapshot_in(cache: impl AsRef<Path>, repository: &str, revision: &str) -> Result<PathBuf> {
    let refuse = |name: &str| ErrorKind::HubName { name: name.into() }.into();
    if !is_repository(repository) {
        return Err(refuse(repository));
    }
    if !revision.split('/').all(is_part) {
        return Err(refuse(revision));
    }
    let folder = cache.as_ref().join(format!("models--{}", repository.replace('/', "--")));
    let snapshots = folder.join("snapshots");
    let commit = match read_ref(&folder, revision)? {
        Some(commit) => commit,
        None => revision.to_owned(),
    };
    let snapshot = snapshots.join(&commit);
    // A revision with a slash is not a folder of `snapshots`, only one below such a folder.
    if is_part(&commit) && snapshot.is_dir() {
        return Ok(snapshot);
    }
    let snapshots = names_in(&snapshots);
    Err(ErrorKind::NoSnapshot { revision: revision.into(), snapshots }.at(folder))
}

/// The commit of a ref, if the repository has such a ref.
fn read_ref(folder: &Path, revision: &str) -> Result<Option<String>> {
    // The hub's own tools keep the revision `refs/pr/1` in `refs/refs/pr/1`.
    let kept = folder.join("refs").join(revision);
    let named = folder.join(revision);
    let path = if kept.is_file() {
        kept
    } else if revision.starts_with("refs/") && named.is_file() {
        named
    } else {
        return Ok(None);
    };
    let file = SourceFile::open(&path)?;
    let byte_len = file.opened_bytes().min(MAX_REF_BYTES);
    let mut bytes = vec![0; usize::try_from(byte_len).unwrap_or_default()];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned()))
}

/// The names of the entries of a folder, sorted.
fn names_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.file_name().into()).collect();
    names.sort();
    names
}

/// Whether this is a valid `name` or `org/name` by the hub's rules.
fn is_repository(repository: &str) -> bool {
    let is_name = |name: &str| {
        let has_edge = |c: char| c == '-' || c == '.';
        is_part(name)
            && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
            && !name.starts_with(has_edge)
            && !name.ends_with(has_edge)
            && name.len() <= 96
    };
    let has_double = repository.contains("--") || repository.contains("..");
    !has_double && repository.split('/').count() <= 2 && repository.split('/').all(is_name)
}

/// Whether a text is a single part of a path on every system and does not lead out of a folder.
fn is_part(part: &str) -> bool {
    let is_dots = part.trim_end_matches([' ', '.']).is_empty();
    !is_dots && !part.contains(['/', '\\', ':']) && !part.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::snapshot_in;
    use crate::{Error, ErrorKind};

    fn cache() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("models--org--name/snapshots/aaaa/model.safetensors", ""),
            ("models--org--name/snapshots/bbbb/model.safetensors", ""),
            ("models--org--name/refs/main", "aaaa\n"),
            ("models--org--name/refs/refs/pr/1", " bbbb"),
            ("models--org--name/refs/pr/2", "bbbb"),
            ("models--org--name/refs/gone", "cccc"),
            ("models--org--name/refs/evil", "../../../models--b/snapshots/1"),
            ("models--org--name/refs/empty", ""),
            ("models--b/snapshots/1/x", ""),
        ] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn refs_and_commits_lead_to_snapshots() {
        let cache = cache();
        for (repository, revision, expected) in [
            ("org/name", "main", "models--org--name/snapshots/aaaa"),
            ("org/name", "refs/pr/1", "models--org--name/snapshots/bbbb"),
            ("org/name", "refs/pr/2", "models--org--name/snapshots/bbbb"),
            ("org/name", "pr/2", "models--org--name/snapshots/bbbb"),
            ("org/name", "bbbb", "models--org--name/snapshots/bbbb"),
            ("b", "1", "models--b/snapshots/1"),
        ] {
            let snapshot = snapshot_in(&cache, repository, revision).unwrap();
            assert_eq!(snapshot, cache.path().join(expected));
        }
    }

    #[test]
    fn no_other_snapshot_is_taken_for_one_that_is_not_there() {
        let cache = cache();
        for revision in ["aaa", "dev", "gone", "evil", "empty", "aaaa/model.safetensors", "refs"] {
            match snapshot_in(&cache, "org/name", revision).map_err(Error::into_kind) {
                Err(ErrorKind::NoSnapshot { snapshots, .. }) => {
                    assert_eq!(snapshots, [Path::new("aaaa"), Path::new("bbbb")]);
                }
                other => panic!("{revision}: {other:?}"),
            }
        }
        let error = snapshot_in(&cache, "org/other", "main").unwrap_err();
        assert!(error.path().unwrap().ends_with("models--org--other"), "{error}");
        let kind = error.kind();
        assert!(
            matches!(kind, ErrorKind::NoSnapshot { snapshots, .. } if snapshots.is_empty()),
            "{kind:?}"
        );
    }

    #[test]
    fn names_that_leave_the_cache_are_refused() {
        for (repository, revision) in [
            ("", "main"),
            ("..", "main"),
            ("a/b/c", "main"),
            ("a/", "main"),
            ("/a", "main"),
            ("../a", "main"),
            ("a--b", "main"),
            ("a..b", "main"),
            ("-a/b", "main"),
            ("a/b.", "main"),
            ("a b", "main"),
            ("a\\b", "main"),
            ("C:", "main"),
            ("a/b\0", "main"),
            ("b", ""),
            ("b", ".."),
            ("b", "../1"),
            ("b", "x/../../snapshots/1"),
            ("b", "/1"),
            ("b", "1/"),
            ("b", "x\\y"),
            ("b", "C:1"),
            ("b", "1\n"),
        ] {
            let refused =
                snapshot_in(Path::new("."), repository, revision).map_err(Error::into_kind);
            assert!(
                matches!(refused, Err(ErrorKind::HubName { .. })),
                "{repository:?} {revision:?}"
            );
        }
    }
}
