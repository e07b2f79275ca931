//! A file put in the place of another, whole or not at all.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::ErrorKind;

/// Puts what `write` writes and syncs in the place of the file at this path.
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

/// A file without a name that anyone looks for, which is removed when it is dropped.
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

/// Makes the new name of the file outlive a loss of power, where the system can.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Folders that may be written to but not read, and file systems that cannot sync one.
        Err(error) if is_unsupported(error.kind()) => Ok(()),
        synced => synced,
    }
}

#[cfg(unix)]
const fn is_unsupported(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(kind, InvalidInput | PermissionDenied | Unsupported)
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
