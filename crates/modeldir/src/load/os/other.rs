//! Replacements of the system calls of Linux on other systems.

use std::fs::File;
use std::io;
use std::path::Path;

/// The type of a file system is unknown.
pub(in crate::load) fn file_system(_file: &File) -> Option<u32> {
    None
}

/// The type of a file system is unknown.
pub(in crate::load) fn file_system_at(_path: &Path) -> Option<u32> {
    None
}

/// The size of a page, as on most machines; nothing is counted by it.
pub(in crate::load) fn page_size() -> u64 {
    4096
}

/// No read is known to wait.
pub(in crate::load) fn has_to_wait(_file: &File, _offset: u64) -> bool {
    false
}

/// The number of cached pages is unknown.
pub(in crate::load) fn cached_pages(_file: &File, _offset: u64, _byte_len: u64) -> Option<u64> {
    None
}

/// No file has direct reads.
pub(in crate::load) fn direct_alignment(_file: &File, _default: u64) -> Option<u64> {
    None
}

/// No file has direct reads.
pub(in crate::load) fn read_at(_file: &File, _buf: &mut [u8], _offset: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
