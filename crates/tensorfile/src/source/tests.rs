//! Files that stay, change or move, and paths that are no files.

use std::fs;
use std::path::Path;

use super::SourceFile;
use crate::{ErrorKind, FileFact, FileKind, ReadAt, Unchanged};

fn sample(dir: &Path) -> std::path::PathBuf {
    let path = dir.join("sample");
    fs::write(&path, [7; 100]).unwrap();
    path
}

#[test]
fn reads_past_the_end_say_what_was_asked_and_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let source = SourceFile::open(&path).unwrap();
    let mut buf = [0; 50];
    source.read_exact_at(&mut buf, 50).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(60).unwrap();
    let error = source.read_exact_at(&mut buf, 50).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::ReadPastEnd { range, byte_len: 60 } if *range == (50..100)),
        "{error:?}"
    );
    assert_eq!(error.path(), Some(&*path));
    assert_eq!((source.opened_bytes(), source.byte_len().unwrap()), (100, 60));
    let error = source.check_unchanged().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Changed { before: 100, after: 60, .. }), "{error:?}");
}

#[test]
fn a_file_written_in_place_has_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let source = SourceFile::open(&path).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let error = ReadAt::check_unchanged(&source).unwrap_err();
    let kind = error.kind();
    assert!(matches!(kind, ErrorKind::Changed { what: FileFact::Modified, after: 0, .. }));
    assert_ne!(SourceFile::open(&path).unwrap().identity(), source.identity());
}

/// Does this, and again until the time of the last change is not that of opening: the clock of a
/// file system ticks some hundred times a second.
#[cfg(unix)]
fn until_time_of_change_differs(source: &SourceFile, change: impl Fn()) {
    use std::os::unix::fs::MetadataExt;
    use std::time::{Duration, Instant};
    let now = || {
        let metadata = source.file().metadata().unwrap();
        (metadata.ctime(), metadata.ctime_nsec())
    };
    let (before, start) = (now(), Instant::now());
    while now() == before {
        assert!(start.elapsed() < Duration::from_secs(20), "a change leaves its time as it was");
        change();
    }
}

#[cfg(unix)]
#[test]
fn a_rewrite_that_puts_the_time_back_has_changed_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let source = SourceFile::open(&path).unwrap();
    let modified = source.file().metadata().unwrap().modified().unwrap();
    until_time_of_change_differs(&source, || {
        fs::write(&path, [8; 100]).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(modified).unwrap();
    });
    let again = SourceFile::open(&path).unwrap();
    for error in [source.check_unchanged(), again.check_same(&source.identity())] {
        let error = error.unwrap_err();
        let is_time = matches!(error.kind(), ErrorKind::Changed { what: FileFact::Changed, .. });
        assert!(is_time && error.path() == Some(&*path), "{error:?}");
    }
}

#[cfg(unix)]
#[test]
fn permissions_and_owner_may_change() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o644);
    let source = SourceFile::open(&path).unwrap();
    until_time_of_change_differs(&source, || set_mode(0o600));
    source.check_unchanged().unwrap();
    let again = SourceFile::open(&path).unwrap();
    again.check_same(&source.identity()).unwrap();
    // Only root may give a file away.
    if chown(&path, Some(1), None).is_ok() {
        until_time_of_change_differs(&again, || chown(&path, Some(1), None).unwrap());
        again.check_unchanged().unwrap();
        let third = SourceFile::open(&path).unwrap();
        until_time_of_change_differs(&third, || chown(&path, None, Some(1)).unwrap());
        third.check_unchanged().unwrap();
    }
    // A write is a change, whatever the permissions are.
    fs::File::options().append(true).open(&path).unwrap().set_len(99).unwrap();
    let error = source.check_unchanged().unwrap_err();
    let is_length = matches!(error.kind(), ErrorKind::Changed { what: FileFact::ByteLen, .. });
    assert!(is_length, "{error:?}");
}

#[test]
fn the_length_alone_is_proof_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let source = SourceFile::open_with(&path, Unchanged::ByteLen).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    source.check_unchanged().unwrap();
    // Another file, as the name of a file system without stable inodes leads to.
    let other = dir.path().join("other");
    fs::write(&other, [8; 100]).unwrap();
    let other = SourceFile::open_with(&other, Unchanged::ByteLen).unwrap();
    other.check_same(&source.identity()).unwrap();
    file.set_len(99).unwrap();
    let error = source.check_unchanged().unwrap_err();
    let is_length = |what| what == FileFact::ByteLen;
    assert!(matches!(error.kind(), ErrorKind::Changed { what, .. } if is_length(*what)));
    let shorter = SourceFile::open_with(&path, Unchanged::ByteLen).unwrap();
    shorter.check_same(&source.identity()).unwrap_err();
}

#[test]
fn the_error_of_a_changed_time_names_the_option() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let source = SourceFile::open(&path).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let error = source.check_unchanged().unwrap_err().to_string();
    assert!(error.contains("Unchanged::ByteLen"), "{error}");
}

#[cfg(unix)]
#[test]
fn names_may_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let source = SourceFile::open(&path).unwrap();
    let other = dir.path().join("other");
    fs::hard_link(&path, &other).unwrap();
    until_time_of_change_differs(&source, || {
        fs::remove_file(&other).unwrap();
        fs::hard_link(&path, &other).unwrap();
    });
    source.check_unchanged().unwrap();
    SourceFile::open(&other).unwrap().check_same(&source.identity()).unwrap();
    fs::remove_file(&path).unwrap();
    fs::remove_file(&other).unwrap();
    source.check_unchanged().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn reopened_for_direct_reads_it_is_the_same_file_or_none() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = sample(dir.path());
    let source = SourceFile::open(&path).unwrap();
    match source.reopen_direct() {
        Some(direct) => assert_eq!(direct.metadata().unwrap().len(), 100),
        // Not with `println!`, whose output is hidden if the test passes.
        None => {
            let message = format!("NOT RUN: direct reads of {path:?}\n");
            std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
        }
    }
    fs::rename(&path, dir.path().join("moved")).unwrap();
    assert!(source.reopen_direct().is_none());
    sample(dir.path());
    assert!(source.reopen_direct().is_none());
}

#[test]
fn another_file_is_not_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let source = SourceFile::open(&path).unwrap();
    let modified = source.file().metadata().unwrap().modified().unwrap();
    let other = dir.path().join("other");
    fs::write(&other, [7; 100]).unwrap();
    let file = fs::File::options().write(true).open(&other).unwrap();
    file.set_modified(modified).unwrap();
    fs::rename(&other, &path).unwrap();
    let again = SourceFile::open(&path).unwrap();
    #[cfg(unix)]
    {
        let error = again.check_same(&source.identity()).unwrap_err();
        let is_inode = matches!(error.kind(), ErrorKind::Changed { what: FileFact::Inode, .. });
        assert!(is_inode, "{error:?}");
    }
    again.check_same(&again.identity()).unwrap();
}

#[test]
fn a_file_replaced_under_its_name_is_still_the_one_that_was_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = sample(dir.path());
    let source = SourceFile::open(&path).unwrap();
    let other = dir.path().join("other");
    fs::write(&other, b"new").unwrap();
    fs::rename(&other, &path).unwrap();
    let mut buf = [0; 100];
    source.read_exact_at(&mut buf, 0).unwrap();
    source.check_unchanged().unwrap();
    assert_eq!(buf, [7; 100]);
    assert_ne!(SourceFile::open(&path).unwrap().identity(), source.identity());
}

#[test]
fn what_is_missing_is_told_from_what_dangles() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none");
    let kind = |path: &Path| SourceFile::open(path).unwrap_err().into_kind();
    assert!(matches!(kind(&path), ErrorKind::NotFound));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../blobs/feed", &path).unwrap();
        let link = kind(&path);
        assert!(
            matches!(link, ErrorKind::DanglingLink { target } if target == Path::new("../blobs/feed"))
        );
        let file = sample(dir.path()).join("below a file");
        assert!(matches!(kind(&file), ErrorKind::Io { action: "open it", .. }));
    }
}

#[cfg(unix)]
#[test]
fn what_is_not_a_regular_file_is_named_and_never_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let kind = |path: &Path| match SourceFile::open(path).unwrap_err().into_kind() {
        ErrorKind::NotARegularFile { kind } => Some(kind),
        _ => None,
    };
    assert_eq!(kind(dir.path()), Some(FileKind::Directory));
    assert_eq!(kind(Path::new("/dev/null")), Some(FileKind::Device));
    let socket = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_eq!(kind(&socket), Some(FileKind::Socket));
    let fifo = dir.path().join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(kind(&fifo), Some(FileKind::Fifo));
}
