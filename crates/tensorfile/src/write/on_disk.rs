//! Replaces a file atomically.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::ErrorKind;

/// Replaces the file at this path by a new one, which `write` writes and syncs.
pub(super) fn replace(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), ErrorKind> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let failed = |action| move |source| ErrorKind::io(action, source);
    let mut file = temporary_file(folder).map_err(failed("create a file beside it"))?;
    write(file.as_file_mut()).map_err(failed("write"))?;
    file.persist(path).map_err(|error| failed("replace")(error.error))?;
    sync_folder(folder).map_err(failed("sync its folder after replacing the file"))
}

/// A hidden temporary file, removed when it is dropped.
fn temporary_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tensorfile-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// Syncs a folder, so that new names in it survive a power loss, if the system supports it.
///
/// # Errors
///
/// The operating system's error.
#[cfg(unix)]
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Folders with write but no read permission, and file systems that cannot sync folders.
        Err(error) if matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}

/// Does nothing: only Unix systems sync folders.
///
/// # Errors
///
/// None.
#[cfg(not(unix))]
pub fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
