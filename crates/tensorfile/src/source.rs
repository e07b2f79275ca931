//! A file on disk: opened without surprises, and recognised later.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::identity::Identity;
use crate::{Error, ErrorKind, FileKind, ReadAt, Result};

/// A regular file, open for positioned reads, and which file it was when it was opened.
///
/// A name may lead to another file later; this one stays what it is. Symbolic links are followed.
///
/// ```
/// use tensorfile::{ErrorKind, FileKind, SourceFile};
///
/// # let dir = tempfile::tempdir().expect("a folder");
/// # let path = dir.path().join("w.bin");
/// std::fs::write(&path, b"12345678").expect("it can be written");
/// let source = SourceFile::open(&path)?;
/// let mut two = [0; 2];
/// source.read_exact_at(&mut two, 6)?;
/// assert_eq!((source.opened_len(), &two), (8, b"78"));
///
/// let error = SourceFile::open(dir.path()).unwrap_err();
/// let is_folder = ErrorKind::NotARegularFile { kind: FileKind::Directory };
/// assert_eq!(error.kind().to_string(), is_folder.to_string());
/// # Ok::<(), tensorfile::Error>(())
/// ```
#[derive(Debug)]
pub struct SourceFile {
    path: PathBuf,
    file: File,
    identity: Identity,
}

impl SourceFile {
    /// Opens a regular file for reading. Never blocks on a FIFO or a device.
    ///
    /// # Errors
    ///
    /// Fails where nothing has this path, where it leads to something other than a regular file,
    /// and where the operating system refuses.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, metadata) = open_regular(path).map_err(|kind| kind.at(path))?;
        Ok(Self { path: path.into(), file, identity: Identity::of(&metadata) })
    }

    /// The path as it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The length of the file in bytes when it was opened; [`ReadAt::byte_len`] is the one now.
    #[must_use]
    pub fn opened_len(&self) -> u64 {
        self.identity.byte_len()
    }

    /// Which file it was, and in which state, when it was opened.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The file itself, for what this type does not do.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The same file, opened again for reads that pass by the page cache (`O_DIRECT`).
    ///
    /// Such reads need positions, lengths and addresses that are multiples of what the file system
    /// says. `None` where there is no such thing: on systems other than Linux, on file systems that
    /// refuse, and if the path leads to another file by now.
    #[must_use]
    pub fn reopen_direct(&self) -> Option<File> {
        let file = open_direct(&self.path)?;
        let opened = Identity::of(&file.metadata().ok()?);
        opened.is_of_same_file(&self.identity).then_some(file)
    }

    /// Fills `buf` with the bytes from `offset` on, as [`ReadAt::read_exact_at`], but with an error
    /// that names the file.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::ReadPastEnd`] where the file ends before, otherwise with
    /// [`ErrorKind::Read`].
    pub fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        ReadAt::read_exact_at(&self.file, buf, offset)
            .map_err(|error| self.error(read_error(self, buf.len(), offset, error)))
    }

    /// Succeeds unless the file was written to or shortened since it was opened.
    ///
    /// It looks at the length, the time of the last write and the time of the last change. The
    /// last one no program can set, so that a write is noticed even if the time of the last write
    /// is put back. It does not count where the number of the file's names has changed as well: a
    /// file that was replaced under its name by a rename, or removed, or given another name by a
    /// hard link, is still the file that was opened.
    ///
    /// Not noticed: a write whose traces a program put back, if the file also lost or gained a
    /// name; a write within the tick of the file system's clock in which the file was opened; a
    /// write through a mapping, until the system sets the times; whatever a file system does that
    /// keeps no such times. Refused though no byte changed: new permissions or another owner, the
    /// file itself moved to another name, the time of its last write set.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Changed`].
    pub fn check_unchanged(&self) -> Result<()> {
        let metadata = self.file.metadata();
        let metadata = metadata.map_err(|error| self.error(ErrorKind::io("look at it", error)))?;
        self.identity.compare(&Identity::of(&metadata)).map_err(|kind| self.error(kind))
    }

    /// Succeeds if this is the file that had this identity, and nobody has written to it since.
    ///
    /// That is told from the device and the inode, and from what
    /// [`check_unchanged`](Self::check_unchanged) looks at. A file system that numbers its inodes
    /// anew each time a file is opened is refused, and the error says so; where there are no
    /// inodes at all, length and time of last write decide.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Changed`].
    pub fn check_same(&self, before: &Identity) -> Result<()> {
        before.compare(&self.identity).map_err(|kind| self.error(kind))
    }

    fn error(&self, kind: ErrorKind) -> Error {
        kind.at(&*self.path)
    }
}

impl ReadAt for SourceFile {
    fn byte_len(&self) -> io::Result<u64> {
        self.file.byte_len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        ReadAt::read_exact_at(&self.file, buf, offset)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.check_unchanged()
    }
}

/// Opens a regular file, and looks at what was opened.
fn open_regular(path: &Path) -> Result<(File, Metadata), ErrorKind> {
    let file = open_without_waiting(path).map_err(|error| why_not_opened(path, error))?;
    let metadata = file.metadata().map_err(|error| ErrorKind::io("look at it", error))?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(ErrorKind::NotARegularFile { kind: kind(&metadata) })
    }
}

/// Opens for reading; returns at once even if nobody writes into a FIFO, and takes no terminal.
fn open_without_waiting(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        // The standard library adds CLOEXEC itself.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
        options.custom_flags(i32::try_from(flags).expect("the flags of open are those of an int"));
    }
    options.open(path)
}

#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> Option<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::DIRECT).bits();
    let flags = i32::try_from(flags).expect("the flags of open are those of an int");
    OpenOptions::new().read(true).custom_flags(flags).open(path).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path) -> Option<File> {
    None
}

/// What is wrong with a path that could not be opened.
fn why_not_opened(path: &Path, error: io::Error) -> ErrorKind {
    if error.kind() == io::ErrorKind::NotFound {
        return match fs::read_link(path) {
            Ok(target) => ErrorKind::DanglingLink { target },
            Err(_) => ErrorKind::NotFound,
        };
    }
    // A socket, some devices and, on Windows, a folder cannot be opened at all.
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => ErrorKind::NotARegularFile { kind: kind(&metadata) },
        _ => ErrorKind::io("open it", error),
    }
}

fn kind(metadata: &Metadata) -> FileKind {
    let file_type = metadata.file_type();
    if file_type.is_dir() {
        return FileKind::Directory;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if file_type.is_fifo() {
            return FileKind::Fifo;
        }
        if file_type.is_socket() {
            return FileKind::Socket;
        }
        if file_type.is_block_device() || file_type.is_char_device() {
            return FileKind::Device;
        }
    }
    FileKind::Other
}

/// The error for a read of `len` bytes at `start` that failed.
pub(crate) fn read_error(
    source: &(impl ReadAt + ?Sized),
    len: usize,
    start: u64,
    error: io::Error,
) -> ErrorKind {
    let range = start..start.saturating_add(len as u64);
    match source.byte_len() {
        Ok(byte_len) if error.kind() == io::ErrorKind::UnexpectedEof => {
            ErrorKind::ReadPastEnd { range, byte_len }
        }
        _ => ErrorKind::Read { range, source: Arc::new(error) },
    }
}

#[cfg(test)]
mod tests;
