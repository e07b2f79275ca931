//! Why a shard that the index names is probably missing.

use std::fs;
use std::path::{Path, PathBuf};

use super::listing::{Listing, is_partial};
use crate::MissingCause;

/// Why `shard`, a path relative to `root` that does not open, is probably missing.
///
/// Looks for a dangling link, for what downloads leave beside the shard, and for what the hub's own
/// tools leave in `.cache/huggingface/download` and in the blobs of a hub cache.
pub(crate) fn missing_cause(root: &Path, shard: &Path) -> MissingCause {
    if let Ok(target) = fs::read_link(root.join(shard)) {
        return MissingCause::DanglingLink(target);
    }
    let found =
        beside(root, shard).or_else(|| in_downloads(root, shard)).or_else(|| in_blobs(root));
    found.map_or(MissingCause::Unknown, MissingCause::Incomplete)
}

/// The traces of a download in the shard's own folder, or below `folder` of it.
fn beside(root: &Path, shard: &Path) -> Option<PathBuf> {
    let name = shard.file_name()?.to_str()?;
    let folder = shard.parent()?;
    // `.name.xyz.incomplete` is hidden until it is whole.
    let rest = |entry: &str| {
        let entry = entry.strip_prefix('.').unwrap_or(entry);
        entry.strip_prefix(name)?.strip_prefix('.').map(str::to_owned)
    };
    let is_trace = |entry: &str| {
        rest(entry).is_some_and(|rest| {
            let extension = rest.rsplit('.').next().unwrap_or_default();
            extension != "lock" && is_partial(extension)
        })
    };
    first_in(root, folder, is_trace)
}

/// What `hf download --local-dir` leaves: a folder that mirrors the model's.
fn in_downloads(root: &Path, shard: &Path) -> Option<PathBuf> {
    let mirror = Path::new(".cache/huggingface/download").join(shard);
    if let Some(found) = beside(root, &mirror) {
        return Some(found);
    }
    // Newer versions name the part by a hash; the lock still bears the shard's name, and the
    // metadata is written when the shard is whole.
    let trace = |ending: &str| {
        let mut name = mirror.clone().into_os_string();
        name.push(ending);
        root.join(name).exists()
    };
    if !trace(".lock") || trace(".metadata") {
        return None;
    }
    first_in(root, mirror.parent()?, is_incomplete)
}

/// What a broken download leaves in the blobs of a hub cache, if `root` is a snapshot in one.
fn in_blobs(root: &Path) -> Option<PathBuf> {
    let is_snapshot = root.parent()?.file_name()? == "snapshots";
    if !is_snapshot {
        return None;
    }
    first_in(root, Path::new("../../blobs"), is_incomplete)
}

fn is_incomplete(name: &str) -> bool {
    name.ends_with(".incomplete")
}

/// The first entry by name of a folder below `root` that fits.
fn first_in(root: &Path, folder: &Path, fits: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let listing = Listing::read(&root.join(folder)).ok()?;
    let mut names = listing.entries.iter().filter_map(|entry| entry.name.to_str());
    names.find(|name| fits(name)).map(|name| folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::missing_cause;
    use crate::MissingCause;
    use std::fs;
    use std::path::{Path, PathBuf};

    #[test]
    fn a_partial_download_is_found_where_tools_leave_it() {
        const DOWNLOADS: &str = ".cache/huggingface/download";
        let cases: &[(&[&str], &str, Option<&str>)] = &[
            (&[], "m.safetensors", None),
            (&["m.safetensors.incomplete"], "m.safetensors", Some("m.safetensors.incomplete")),
            (
                &["m.safetensors.part_ab", "m.safetensors.part_aa"],
                "m.safetensors",
                Some("m.safetensors.part_aa"),
            ),
            (&["s/m.safetensors.x.tmp"], "s/m.safetensors", Some("s/m.safetensors.x.tmp")),
            (
                &[".m.safetensors.Kf3.incomplete"],
                "m.safetensors",
                Some(".m.safetensors.Kf3.incomplete"),
            ),
            (
                &["m.safetensors.lock", "m.safetensors.bak", "mm.safetensors.part"],
                "m.safetensors",
                None,
            ),
            (
                &[&format!("{DOWNLOADS}/s/m.safetensors.12ab.incomplete")],
                "s/m.safetensors",
                Some(".cache/huggingface/download/s/m.safetensors.12ab.incomplete"),
            ),
            (
                &[
                    &format!("{DOWNLOADS}/m.safetensors.lock"),
                    &format!("{DOWNLOADS}/h=.e.incomplete"),
                ],
                "m.safetensors",
                Some(".cache/huggingface/download/h=.e.incomplete"),
            ),
            (&[&format!("{DOWNLOADS}/h=.e.incomplete")], "m.safetensors", None),
        ];
        for (files, shard, expected) in cases {
            let dir = tempfile::tempdir().unwrap();
            for file in *files {
                let path = dir.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            let expected = expected.map_or(MissingCause::Unknown, |part| {
                MissingCause::Incomplete(PathBuf::from(part))
            });
            assert_eq!(missing_cause(dir.path(), Path::new(shard)), expected, "{files:?}");
        }
    }

    #[test]
    fn a_snapshot_looks_into_the_blobs() {
        let dir = tempfile::tempdir().unwrap();
        let snapshot = dir.path().join("snapshots/1");
        fs::create_dir_all(&snapshot).unwrap();
        fs::create_dir_all(dir.path().join("blobs")).unwrap();
        fs::write(dir.path().join("blobs/ab.incomplete"), "").unwrap();
        assert_eq!(
            missing_cause(&snapshot, Path::new("m.safetensors")),
            MissingCause::Incomplete("../../blobs/ab.incomplete".into())
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_dangling_link_gives_its_target() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("../../blobs/ab", dir.path().join("m.safetensors")).unwrap();
        assert_eq!(
            missing_cause(dir.path(), Path::new("m.safetensors")),
            MissingCause::DanglingLink("../../blobs/ab".into())
        );
    }
}
