//! Saves that are refused, and their errors.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tensorfile::{HeaderOptions, Limit, LimitOn, Remedy};

use super::{HALVES, INDEX, listed, options, replacing, tiny, touch};
use crate::save::{SaveOptions, of_file};
use crate::{Error, ErrorKind, ModelDir, OpenOptions};

#[test]
fn rejects_metadata_that_the_index_says_itself() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("new");
    let metadata = BTreeMap::from([("total_size".to_owned(), "7".to_owned())]);
    let error = tiny(1, 1).save_with(&dir, &SaveOptions { metadata, ..options(9) }).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::MetadataKey { key, .. } if &**key == "total_size"),
        "{error}"
    );
    assert!(!dir.exists());
}

#[test]
fn rejects_a_directory_with_weights_and_leaves_it_alone() {
    for name in [
        "model.safetensors",
        "model-00001-of-00009.safetensors",
        INDEX,
        "model.fp16.safetensors",
        "adapter_model.safetensors",
        "diffusion_pytorch_model.safetensors.index.json",
    ] {
        let folder = tempfile::tempdir().unwrap();
        touch(folder.path(), &[name, "config.json"]);
        let error = tiny(1, 2).save_with(folder.path(), &options(4)).unwrap_err();
        let ErrorKind::WeightsExist { found } = error.kind() else { panic!("{error}") };
        assert_eq!((error.path(), found), (Some(folder.path()), &vec![PathBuf::from(name)]));
        let mut expected = [name, "config.json"];
        expected.sort_unstable();
        assert_eq!(listed(folder.path()), expected);
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"old");
    }
}

#[test]
fn rejects_a_path_that_is_no_directory() {
    let folder = tempfile::tempdir().unwrap();
    touch(folder.path(), &["file"]);
    for (path, action) in [("file", "create"), ("file/below", "create")] {
        let path = folder.path().join(path);
        let error = tiny(1, 1).save_with(&path, &options(4)).unwrap_err();
        let found = not_done(&error);
        assert_eq!((error.path(), found), (Some(&*path), Some(action)));
    }
}

#[cfg(unix)]
#[test]
fn rejects_a_directory_that_cannot_be_written_to() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    // Root can write anywhere but to a file system of the kernel's own.
    let is_root = fs::write(folder.path().join("x"), "").is_ok();
    let dir = if is_root { Path::new("/sys") } else { folder.path() };
    if is_root && !dir.is_dir() {
        let message = "rejects_a_directory_that_cannot_be_written_to: NOT RUN, there is no /sys\n";
        return std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
    }
    let error = tiny(1, 1).save_with(dir, &options(4)).unwrap_err();
    assert_eq!((not_done(&error), error.path()), (Some("create a folder in"), Some(dir)));
}

#[test]
fn rejects_a_folder_in_the_place_of_a_file_before_anything_changes() {
    for occupied in [HALVES[1], INDEX] {
        let folder = tempfile::tempdir().unwrap();
        touch(folder.path(), &["model.safetensors"]);
        fs::create_dir(folder.path().join(occupied)).unwrap();
        let error = tiny(1, 2).save_with(folder.path(), &replacing(4)).unwrap_err();
        let path = folder.path().join(occupied);
        assert!(not_done(&error).is_some() && error.path() == Some(&*path), "{error}");
        let mut expected = [occupied, "model.safetensors"];
        expected.sort_unstable();
        assert_eq!(listed(folder.path()), expected);
    }
}

#[test]
fn errors_name_the_file_as_it_would_have_been_and_no_option_of_the_writer() {
    let waiting = Path::new("m/.waiting/model.safetensors");
    let limit = |what, found, limit| {
        tensorfile::ErrorKind::from(Limit {
            what,
            limit,
            found,
            remedy: Some(Remedy::Raise("WriterOptions::max")),
        })
    };
    for (of_writer, message) in [
        (
            limit(LimitOn::HeaderBytes, 9, 8).at(waiting),
            "header of 9 bytes, the limit is 8 (a smaller SaveOptions::max_shard_bytes avoids it)",
        ),
        (
            limit(LimitOn::Tensors, 3, 2).at(waiting),
            "3 tensors, the limit is 2 (a smaller SaveOptions::max_shard_bytes avoids it)",
        ),
        (
            limit(LimitOn::NameBytes, 5, 4).in_tensor("w"),
            "tensor \"w\": name of 5 bytes, the limit is 4",
        ),
        (
            limit(LimitOn::Dimensions, 7, 6).in_tensor("w"),
            "tensor \"w\": 7 dimensions, the limit is 6",
        ),
    ] {
        let of_tensor = of_writer.tensor().map(str::to_owned);
        let error = of_file(Path::new("m/model.safetensors"), of_writer);
        assert_eq!(error.to_string(), format!("m/model.safetensors: {message}"));
        assert_eq!(error.path(), Some(Path::new("m/model.safetensors")));
        assert_eq!(error.tensor(), of_tensor.as_deref());
    }
}

#[test]
fn rejects_a_tensor_that_no_reader_accepts_by_default() {
    let long = "n".repeat(65_537);
    let tensors = [
        modeldir_fixtures::Tensor::new(&long, "U8", &[1], vec![7]),
        modeldir_fixtures::Tensor::new("deep", "U8", &[1; 65], vec![7]),
    ];
    for tensor in tensors {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        fs::write(&path, modeldir_fixtures::file(&[tensor])).unwrap();
        let header =
            HeaderOptions { max_name_bytes: 1 << 20, max_rank: 100, ..HeaderOptions::default() };
        let opened = OpenOptions { header, ..OpenOptions::default() };
        let store = ModelDir::open_with(&path, &opened).unwrap().load().unwrap();
        let to = folder.path().join("new");
        let error = store.save_with(&to, &options(9)).unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ErrorKind::Limit(
                    Limit { what: LimitOn::NameBytes, found: 65_537, limit: 65_536, .. }
                        | Limit { what: LimitOn::Dimensions, found: 65, limit: 64, .. }
                )
            ),
            "{error}"
        );
        assert_eq!(error.path(), Some(&*to.join("model.safetensors")));
        assert_eq!(error.tensor(), store.names().next());
        assert_eq!(listed(&to), [""; 0]);
    }
}

/// The action that the operating system refused, if that is the error.
fn not_done(error: &Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::File(tensorfile::ErrorKind::Io { action, .. }) => Some(action),
        _ => None,
    }
}
