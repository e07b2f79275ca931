//! System calls of Linux that the standard library lacks.
#![expect(unsafe_code, reason = "cachestat has no wrapper in the standard library or rustix")]

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, StatFs, StatxFlags, fstatfs, statfs, statx};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

/// The type of the file system on which a file lies, or `None` where nothing is known.
pub(in crate::load) fn file_system(file: &File) -> Option<u32> {
    kind(fstatfs(file).ok()?)
}

/// The type of the file system on which the file or folder of this path lies.
pub(in crate::load) fn file_system_at(path: &Path) -> Option<u32> {
    kind(statfs(path).ok()?)
}

fn kind(stat: StatFs) -> Option<u32> {
    // The width and sign of the field differ between processors; the types have 32 bits.
    u32::try_from(stat.f_type & 0xffff_ffff).ok()
}

/// The size of a page of the cache, by which the system counts.
pub(in crate::load) fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// Whether reading this byte waits for a disk; false if the system cannot say.
///
/// The question itself may start a read of some pages, so a second answer can differ.
pub(in crate::load) fn has_to_wait(file: &File, offset: u64) -> bool {
    let mut byte = [0];
    let mut to = [IoSliceMut::new(&mut byte)];
    preadv2(file, &mut to, offset, ReadWriteFlags::NOWAIT) == Err(Errno::AGAIN)
}

/// `struct cachestat_range` of the kernel.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    len: u64,
}

/// `struct cachestat` of the kernel.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    nr_cache: u64,
    nr_dirty: u64,
    nr_writeback: u64,
    nr_evicted: u64,
    nr_recently_evicted: u64,
}

/// The number of cached pages of this many bytes, or `None` before Linux 6.5 and for a file that this
/// process neither owns nor may write to.
pub(in crate::load) fn cached_pages(file: &File, offset: u64, byte_len: u64) -> Option<u64> {
    if byte_len == 0 {
        return Some(0); // The kernel takes a length of 0 for the rest of the file.
    }
    let range = CachestatRange { offset, len: byte_len };
    let mut stat = Cachestat::default();
    let (fd, flags) = (file.as_raw_fd(), 0_u32);
    // The number of the call is the same on all processors but Alpha.
    const SYS_CACHESTAT: libc::c_long = 451;
    // SAFETY: both structs have the layout that the call documents and live until it returns; the
    // call reads the one and writes the other.
    let result =
        unsafe { libc::syscall(SYS_CACHESTAT, fd, &raw const range, &raw mut stat, flags) };
    (result == 0).then_some(stat.nr_cache)
}

/// What positions, lengths and addresses of a direct read must be multiples of: `None` if the file
/// has no direct reads, `default` where the system does not say.
pub(in crate::load) fn direct_alignment(file: &File, default: u64) -> Option<u64> {
    let Ok(stat) = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else {
        return Some(default);
    };
    if stat.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return Some(default);
    }
    let align = stat.stx_dio_mem_align.max(stat.stx_dio_offset_align);
    let is_usable = stat.stx_dio_offset_align > 0 && align.is_power_of_two();
    is_usable.then_some(align.into())
}

/// Reads at a position; fewer bytes than there is room for are no error.
pub(in crate::load) fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buf, offset)
}
