//! `Identity`: which file it is, and its state; `Unchanged`: how much of it must stay.

use std::fs::Metadata;

use crate::ErrorKind;
use crate::file_facts::FileFact;

/// What shows that the bytes of a file have not changed since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unchanged {
    /// Device, inode, length and times; see [`SourceFile::check_unchanged`].
    ///
    /// [`SourceFile::check_unchanged`]: crate::SourceFile::check_unchanged
    #[default]
    Identity,
    /// The length alone. Use it for a file system whose times or inode numbers change although no
    /// byte does, or for files whose times are set while they are read. A rewritten file of the
    /// same length is then not noticed.
    ByteLen,
}

/// Which file it is, and its state: device, inode, length, times of last write and change,
/// permissions, owner and number of names.
///
/// On one machine, equal identities mean equal bytes, if the file system keeps such times. On
/// systems without inodes the numbers are 0, and only length and time of last write are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    device: u64,
    inode: u64,
    byte_len: u64,
    modified_ns: i128,
    changed_ns: i128,
    status: Status,
}

/// What sets the time of the last change without a write: permissions, owner, number of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Status {
    mode: u32,
    owner: u32,
    group: u32,
    num_names: u64,
}

impl Identity {
    /// The length of the file in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// Whether both identify one file, whatever its state.
    pub(crate) fn is_of_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Succeeds if, by this proof, the file was not written to since it had this identity.
    pub(crate) fn compare(&self, after: &Self, proof: Unchanged) -> Result<(), ErrorKind> {
        let both = self.facts().into_iter().zip(after.facts());
        let counts = |what: FileFact| match (proof, what) {
            (_, FileFact::ByteLen) => true,
            (Unchanged::ByteLen, _) => false,
            // Another status explains another time of change.
            (Unchanged::Identity, FileFact::Changed) => self.status == after.status,
            (Unchanged::Identity, _) => true,
        };
        let mut both = both.filter(|((what, _), _)| counts(*what));
        match both.find(|(before, after)| before != after) {
            None => Ok(()),
            Some(((what, before), (_, after))) => Err(ErrorKind::Changed { what, before, after }),
        }
    }

    /// The facts that stay equal while the bytes do.
    fn facts(&self) -> [(FileFact, i128); 5] {
        [
            (FileFact::Device, self.device.into()),
            (FileFact::Inode, self.inode.into()),
            (FileFact::ByteLen, self.byte_len.into()),
            (FileFact::Modified, self.modified_ns),
            (FileFact::Changed, self.changed_ns),
        ]
    }

    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let in_ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            byte_len: metadata.len(),
            modified_ns: in_ns(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: in_ns(metadata.ctime(), metadata.ctime_nsec()),
            status: Status {
                mode: metadata.mode(),
                owner: metadata.uid(),
                group: metadata.gid(),
                num_names: metadata.nlink(),
            },
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok();
        let since_epoch = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let modified_ns = since_epoch.and_then(|time| i128::try_from(time.as_nanos()).ok());
        Self {
            device: 0,
            inode: 0,
            byte_len: metadata.len(),
            modified_ns: modified_ns.unwrap_or_default(),
            changed_ns: 0,
            status: Status::default(),
        }
    }
}
