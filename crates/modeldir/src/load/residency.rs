//! Whether bytes of a file are in the page cache.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "cachestat has no wrapper in the standard library or rustix")
)]

use std::fs::File;
use std::ops::Range;

/// How much of a range of a file the page cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Residency {
    /// None of it.
    Absent,
    /// Some of its pages.
    Partial { cached: u64, pages: u64 },
    /// All of it.
    Cached,
}

/// Asks how much of these bytes is cached; takes some microseconds.
///
/// Where the system does not count the pages, one byte from the middle stands for all.
pub(super) fn of(file: &File, range: &Range<u64>) -> Residency {
    let (start, end) = (range.start, range.end);
    let page = page_size();
    let pages = end.div_ceil(page).saturating_sub(start / page);
    match cached_pages(file, start, end.saturating_sub(start)) {
        Some(0) => Residency::Absent,
        Some(cached) if cached >= pages => Residency::Cached,
        Some(cached) => Residency::Partial { cached, pages },
        None if has_to_wait(file, start + (end.saturating_sub(start)) / 2) => Residency::Absent,
        None => Residency::Cached,
    }
}

/// The size of a page of the cache, by which the system counts.
fn page_size() -> u64 {
    #[cfg(unix)]
    return rustix::param::page_size() as u64;
    #[cfg(not(unix))]
    4096
}

/// Whether reading this byte has to wait for a disk, as far as the system says.
///
/// The system may start to read some pages from there on, so this is for the one question only.
#[cfg(target_os = "linux")]
fn has_to_wait(file: &File, offset: u64) -> bool {
    let mut byte = [0];
    let mut to = [std::io::IoSliceMut::new(&mut byte)];
    let read = rustix::io::preadv2(file, &mut to, offset, rustix::io::ReadWriteFlags::NOWAIT);
    read == Err(rustix::io::Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn has_to_wait(_file: &File, _offset: u64) -> bool {
    false
}

/// The number of cached pages, or `None` before Linux 6.5, on other systems, and for a file that
/// this process neither owns nor may write to.
#[cfg(target_os = "linux")]
fn cached_pages(file: &File, offset: u64, byte_len: u64) -> Option<u64> {
    use std::os::fd::AsRawFd;

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

#[cfg(not(target_os = "linux"))]
fn cached_pages(_file: &File, _offset: u64, _byte_len: u64) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::{Residency, of};

    /// A file of 64 pages that was just written, and so is cached.
    fn written() -> std::fs::File {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        std::io::Write::write_all(&mut file, &[7; 64 * 4096]).unwrap();
        file
    }

    #[test]
    fn what_was_just_written_is_cached() {
        assert_eq!(of(&written(), &(100..64 * 4096)), Residency::Cached);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_not_there_is_absent_and_what_is_half_there_is_partial() {
        let file = written();
        assert!(!super::has_to_wait(&file, 5));
        // Before Linux 6.5 the system does not count pages.
        if super::cached_pages(&file, 0, 1).is_some() && super::page_size() == 4096 {
            assert_eq!(of(&file, &(64 * 4096..80 * 4096)), Residency::Absent);
            let half = Residency::Partial { cached: 16, pages: 32 };
            assert_eq!(of(&file, &(48 * 4096..80 * 4096)), half);
        } else {
            let message = "NOT RUN: counting cached pages, which this system does not do";
            std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
        }
    }
}
