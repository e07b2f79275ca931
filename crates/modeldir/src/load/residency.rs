//! Whether bytes of a file are in the page cache.

use std::fs::File;
use std::ops::Range;

use super::os;

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

/// How much of these bytes is cached; takes some microseconds.
///
/// If the system cannot count the pages, one byte from the middle stands for all.
pub(super) fn of(file: &File, range: &Range<u64>) -> Residency {
    let (start, end) = (range.start, range.end);
    let page = os::page_size();
    let pages = end.div_ceil(page).saturating_sub(start / page);
    let cached = os::cached_pages(file, start, end.saturating_sub(start));
    judge(cached, pages, || os::has_to_wait(file, start + (end.saturating_sub(start)) / 2))
}

/// How much is cached, by the cached pages if they can be counted; otherwise by whether the byte in
/// the middle has to wait.
fn judge(cached: Option<u64>, pages: u64, has_to_wait: impl FnOnce() -> bool) -> Residency {
    match cached {
        Some(0) => Residency::Absent,
        Some(cached) if cached >= pages => Residency::Cached,
        Some(cached) => Residency::Partial { cached, pages },
        None if has_to_wait() => Residency::Absent,
        None => Residency::Cached,
    }
}

#[cfg(test)]
mod tests {
    use super::{Residency, judge, of, os};

    #[test]
    fn where_pages_cannot_be_counted_a_byte_that_waits_stands_for_all() {
        let partial = Residency::Partial { cached: 3, pages: 4 };
        for (cached, waits, expected) in [
            (None, true, Residency::Absent),
            (None, false, Residency::Cached),
            (Some(0), false, Residency::Absent),
            (Some(3), true, partial),
            (Some(4), true, Residency::Cached),
            (Some(5), true, Residency::Cached),
        ] {
            assert_eq!(judge(cached, 4, || waits), expected, "{cached:?} {waits}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_byte_that_is_not_cached_has_to_wait_and_a_cached_one_does_not() {
        use super::super::direct::tests::sample;
        use rustix::fs::{Advice, fadvise, fsync};
        let Some((_folder, file, bytes)) = sample("a_byte_that_is_not_cached") else { return };
        let file = file.file();
        let middle = bytes.len() as u64 / 2;
        fsync(file).unwrap();
        fadvise(file, 0, None, Advice::DontNeed).unwrap();
        let is_absent = os::cached_pages(file, middle, 1) == Some(0);
        assert!(!is_absent || os::has_to_wait(file, middle));
        std::os::unix::fs::FileExt::read_exact_at(file, &mut [0], middle).unwrap();
        assert!(!os::has_to_wait(file, middle));
    }

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
        assert!(!os::has_to_wait(&file, 5));
        // Before Linux 6.5 the system does not count pages.
        if os::cached_pages(&file, 0, 1).is_some() && os::page_size() == 4096 {
            assert_eq!(of(&file, &(64 * 4096..80 * 4096)), Residency::Absent);
            let half = Residency::Partial { cached: 16, pages: 32 };
            assert_eq!(of(&file, &(48 * 4096..80 * 4096)), half);
        } else {
            let message = "NOT RUN: counting cached pages, which this system does not do";
            std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
        }
    }
}
