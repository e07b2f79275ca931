//! `Identity`: which file it is, and its state.

use std::fs::Metadata;

use crate::ErrorKind;
use crate::file_facts::FileFact;

/// Which file it is, and its state: device, inode, length, times of last write and change, number
/// of names.
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

    /// Succeeds if the file was not written to since it had this identity.
    pub(crate) fn compare(&self, after: &Self) -> Result<(), ErrorKind> {
        let both = self.facts().into_iter().zip(after.facts());
        // Adding or removing a hard link sets the time of change without a write.
        let same_names = self.num_names == after.num_names;
        let mut both = both.filter(|((what, _), _)| same_names || *what != FileFact::Changed);
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
            num_names: metadata.nlink(),
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
            num_names: 0,
        }
    }
}
