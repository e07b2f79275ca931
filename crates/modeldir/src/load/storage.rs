//! What kind of file system a file lies on.

use std::fs::File;

/// How a file system is best read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// A device of this machine, or nothing is known of it.
    Local,
    /// Across a network or through a process: many large reads at once, kept in the page cache.
    Remote,
    /// The page cache itself.
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

pub(super) fn of(file: &File) -> Storage {
    match kind(file) {
        Some(kind) if REMOTE.contains(&kind) => Storage::Remote,
        Some(kind) if MEMORY.contains(&kind) => Storage::Memory,
        _ => Storage::Local,
    }
}

/// The type of the file system as `statfs` of Linux has it, or `None` where nothing is known.
#[cfg(target_os = "linux")]
fn kind(file: &File) -> Option<u32> {
    let stat = rustix::fs::fstatfs(file).ok()?;
    // The width and sign of the field differ between processors; the types have 32 bits.
    u32::try_from(stat.f_type & 0xffff_ffff).ok()
}

#[cfg(not(target_os = "linux"))]
fn kind(_file: &File) -> Option<u32> {
    None
}
