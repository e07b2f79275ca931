//! Facts about files for errors: the kind of a path's target, and what identifies a file.

use std::fmt;

/// A fact that identifies a file, or its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFact {
    /// The device that the file is on.
    Device,
    /// The inode: the number of the file on its device.
    Inode,
    /// The length in bytes.
    ByteLen,
    /// Time of the last write to its bytes; any program can set it.
    Modified,
    /// Time of the last change of bytes, permissions, owner or names; only the system sets it.
    Changed,
}

/// Displays a fact before and now: numbers as they are, times by which is later.
pub(crate) struct Change(pub(crate) FileFact, pub(crate) i128, pub(crate) i128);

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(what, before, after) = self;
        let now = if after < before { "an earlier" } else { "a later" };
        match what {
            FileFact::Device => write!(f, "device was {before}, is {after}"),
            FileFact::Inode => write!(
                f,
                "inode was {before}, is {after} (another file took its name, or the file system has no stable inode numbers)"
            ),
            FileFact::ByteLen => write!(f, "length was {before}, is {after}"),
            FileFact::Modified => write!(f, "last written at {now} time"),
            FileFact::Changed => write!(
                f,
                "last changed at {now} time, with length, last write, permissions, owner and number of names as before"
            ),
        }?;
        match what {
            FileFact::ByteLen => Ok(()),
            _ => f.write_str(" (Unchanged::ByteLen takes the length alone as proof of no change)"),
        }
    }
}

/// The target of a path that is no regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A folder.
    Directory,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
    /// Anything else without bytes of its own.
    Other,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directory => "directory",
            Self::Fifo => "FIFO",
            Self::Socket => "socket",
            Self::Device => "device",
            Self::Other => "special file",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, FileFact};

    #[test]
    fn changes_show_numbers_but_no_nanoseconds() {
        let cases = [
            (FileFact::Device, "device was 1, is 2"),
            (FileFact::Modified, "last written at a later time"),
            (
                FileFact::Changed,
                "last changed at a later time, with length, last write, permissions, owner and \
                 number of names as before",
            ),
        ];
        let option = " (Unchanged::ByteLen takes the length alone as proof of no change)";
        for (what, shown) in cases {
            assert_eq!(Change(what, 1, 2).to_string(), format!("{shown}{option}"));
        }
        let earlier = Change(FileFact::Modified, 2, 1).to_string();
        assert_eq!(earlier, format!("last written at an earlier time{option}"));
        assert_eq!(Change(FileFact::ByteLen, 1, 2).to_string(), "length was 1, is 2");
        let inode = Change(FileFact::Inode, 1, 2).to_string();
        assert!(inode.starts_with("inode was 1, is 2 (") && inode.contains("stable inode numbers"));
    }
}
