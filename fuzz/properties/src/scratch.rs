//! Folders for files that exist for one input, in memory where the machine has such a place.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use tempfile::TempDir;

/// A new folder. Failing for want of it is no finding.
pub(crate) fn folder() -> TempDir {
    let in_memory = Path::new("/dev/shm");
    let parent = if in_memory.is_dir() { in_memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("modeldir").tempdir_in(parent).expect("a folder to write in")
}

/// Writes a file over what is there.
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    let mut file = File::create(path).expect("a file to write");
    file.write_all(bytes).expect("room for a few kilobytes");
}

/// Removes what is in a folder.
pub(crate) fn clear(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder to read") {
        let path = entry.expect("an entry to read").path();
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.expect("an entry to remove");
    }
}
