//! `SourceFile`: a regular file on disk, opened safely and checked for changes.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::identity::{Identity, Unchanged};
use crate::{Error, ErrorKind, FileKind, ReadAt, Result};

/// A regular file, open for positioned reads, with its identity at opening.
///
/// If the path leads to another file later, this one stays open. Symbolic links are followed.
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
/// assert_eq!((source.opened_bytes(), &two), (8, b"78"));
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
    proof: Unchanged,
}

impl SourceFile {
    /// Opens a regular file for reading. Never blocks on a FIFO or a device.
    ///
    /// # Errors
    ///
    /// Fails if nothing has this path, if it leads to something other than a regular file, or if
    /// the operating system refuses.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Unchanged::default())
    }

    /// Opens as [`open`](Self::open) does, with a choice of what shows that the file is unchanged.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, unchanged: Unchanged) -> Result<Self> {
        let path = path.as_ref();
        let (file, metadata) = open_regular(path).map_err(|kind| kind.at(path))?;
        Ok(Self { path: path.into(), file, identity: Identity::of(&metadata), proof: unchanged })
    }

    /// The path as it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The length of the file in bytes when it was opened; [`ReadAt::byte_len`] is the current one.
    #[must_use]
    pub fn opened_bytes(&self) -> u64 {
        self.identity.byte_len()
    }

    /// The identity and state of the file when it was opened.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The underlying file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The same file, opened again for reads that bypass the page cache (`O_DIRECT`).
    ///
    /// Such reads need positions, lengths and addresses that are multiples of the file system's
    /// block size. `None` on systems other than Linux, if the file system refuses, or if the path
    /// leads to another file by now.
    #[must_use]
    pub fn reopen_direct(&self) -> Option<File> {
        let file = open_direct(&self.path)?;
        let opened = Identity::of(&file.metadata().ok()?);
        opened.is_of_same_file(&self.identity).then_some(file)
    }

    /// Fills `buf` with the bytes from `offset` on; as [`ReadAt::read_exact_at`], but its error
    /// names the file.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::ReadPastEnd`] if the file ends too early, otherwise with
    /// [`ErrorKind::Read`].
    pub fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        ReadAt::read_exact_at(&self.file, buf, offset)
            .map_err(|error| self.error(read_error(self, buf.len(), offset, error)))
    }

    /// Checks that the file was neither written to nor shortened since it was opened.
    ///
    /// It compares the length, the time of the last write and the time of the last change. Programs
    /// cannot set the time of the last change, so a write is noticed even if the time of the last
    /// write is reset. That time is ignored if permissions, owner or the number of hard links have
    /// changed too: they set it without a write. A file that was replaced by a rename, removed, or
    /// given another name by a hard link is still the file that was opened. With
    /// [`Unchanged::ByteLen`] only the length is compared.
    ///
    /// Not noticed: a write after which a program resets the time of the last write, if permissions,
    /// owner or the number of names changed too; a write within the clock tick of the file system in
    /// which the file was opened; a write through a mapping, until the system updates the times; any
    /// write on a file system without such times. Refused although no byte changed: permissions or
    /// an owner set to what they were, a rename of the file itself, a new time of the last write.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Changed`].
    pub fn check_unchanged(&self) -> Result<()> {
        let metadata = self.file.metadata();
        let metadata =
            metadata.map_err(|error| self.error(ErrorKind::io("read its metadata", error)))?;
        self.identity.compare(&Identity::of(&metadata), self.proof).map_err(|kind| self.error(kind))
    }

    /// Checks that this is the file with this identity, and that it was not written to since.
    ///
    /// It compares device, inode, and what [`check_unchanged`](Self::check_unchanged) compares. On
    /// a file system that changes the inode at each opening this always fails, with an error that
    /// says so, except with [`Unchanged::ByteLen`]; on systems without inodes, length and time of
    /// last write decide.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Changed`].
    pub fn check_same(&self, before: &Identity) -> Result<()> {
        before.compare(&self.identity, self.proof).map_err(|kind| self.error(kind))
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

/// Opens a regular file and checks what was opened.
fn open_regular(path: &Path) -> Result<(File, Metadata), ErrorKind> {
    let file = open_without_waiting(path).map_err(|error| why_not_opened(path, error))?;
    let metadata = file.metadata().map_err(|error| ErrorKind::io("read its metadata", error))?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(ErrorKind::NotARegularFile { kind: kind(&metadata) })
    }
}

/// Opens for reading; does not wait for the writer of a FIFO, nor takes a controlling terminal.
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

/// The error for a path that could not be opened.
fn why_not_opened(path: &Path, error: io::Error) -> ErrorKind {
    if error.kind() == io::ErrorKind::NotFound {
        return match fs::read_link(path) {
            Ok(target) => ErrorKind::DanglingLink { target },
            Err(_) => ErrorKind::NotFound,
        };
    }
    // Sockets, some devices and, on Windows, folders cannot be opened at all.
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

/// The error for a failed read of `len` bytes at `start`.
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
