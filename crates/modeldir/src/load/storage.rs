//! What kind of file system a file lies on.

use std::fs::File;
use std::path::Path;

use super::os;

/// How a file system is best read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// A local device, or an unknown one.
    Local,
    /// A network or a FUSE process: many large reads at once, through the page cache.
    Remote,
    /// Memory: the page cache itself holds the files.
    Memory,
}

/// Types of file systems, as `statfs` has them, that are reached over a network or by FUSE.
const REMOTE: [u32; 12] = [
    0x6969,      // NFS
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x517b,      // SMB
    0x6573_5546, // FUSE
    0x0bd0_0bd0, // Lustre
    0x00c3_6400, // Ceph
    0x0102_1997, // 9P
    0x5346_414f, // AFS
    0x4750_4653, // GPFS
    0x1983_0326, // BeeGFS
    0x7461_636f, // OCFS2
];

/// Types of file systems that hold files in memory alone: tmpfs, ramfs, hugetlbfs.
const MEMORY: [u32; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

impl Storage {
    /// How a file is best read.
    pub(super) fn of(file: &File) -> Self {
        Self::on(os::file_system(file))
    }

    /// How the file of this path is best read.
    pub(super) fn at(path: &Path) -> Self {
        Self::on(os::file_system_at(path))
    }

    /// How a file system of this type is best read.
    fn on(file_system: Option<u32>) -> Self {
        match file_system {
            Some(kind) if REMOTE.contains(&kind) => Self::Remote,
            Some(kind) if MEMORY.contains(&kind) => Self::Memory,
            _ => Self::Local,
        }
    }
}
