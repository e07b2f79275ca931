//! One open shard, and how its bytes are read: through the page cache or bypassing it.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use tensorfile::SourceFile;
use tracing::Span;

use super::direct::DirectFile;
use super::options::Io;
use super::residency::{self, Residency};
use super::scratch::Scratch;
use super::stats::Counters;
use super::storage::Storage;
use super::way::Way;
use crate::plan::layout::{PAGE, in_memory};

/// Ranges of which a part is cached are halved down to this length.
const MIN_HALF: u64 = 1 << 20;

/// An open shard, shared by several workers.
#[derive(Debug)]
pub(super) struct ShardReader {
    file: SourceFile,
    io: Io,
    /// The same file opened for direct reads, by the first of them.
    direct: OnceLock<Option<DirectFile>>,
    pub(super) counters: Counters,
    pub(super) span: Span,
}

impl ShardReader {
    pub(super) fn new(file: SourceFile, io: Io, span: Span) -> Self {
        let io = match io {
            // No choice: the whole file is cached, or should be.
            Io::Auto if Storage::of(file.file()) != Storage::Local => Io::Buffered,
            io => io,
        };
        Self { file, io, direct: OnceLock::new(), counters: Counters::default(), span }
    }

    pub(super) fn file(&self) -> &SourceFile {
        &self.file
    }

    /// Calls `read` with the parts of a range in order, and the best way for each. The length of a
    /// part is a multiple of `unit_len` if that of the range is.
    pub(super) fn by_way(
        &self,
        range: Range<u64>,
        unit_len: u64,
        read: &mut dyn FnMut(Way, Range<u64>) -> tensorfile::Result<()>,
    ) -> tensorfile::Result<()> {
        let Range { start, end } = range;
        match (self.io, self.residency(&range)) {
            (Io::Auto, Residency::Partial { .. }) if end - start >= 2 * MIN_HALF => {
                let middle = middle(&range, unit_len);
                self.by_way(start..middle, unit_len, read)?;
                self.by_way(middle..end, unit_len, read)
            }
            (_, residency) => read(Way::of(residency), range),
        }
    }

    /// Reads a range into the worker's buffer and returns it.
    pub(super) fn read_block<'s>(
        &self,
        way: Way,
        range: &Range<u64>,
        scratch: &'s mut Scratch<'_>,
    ) -> tensorfile::Result<&'s [u8]> {
        // A direct read reads whole disk blocks, so it includes those around the range.
        let skip = range.start % PAGE;
        let whole_len = (skip + range.end - range.start).next_multiple_of(PAGE);
        let wanted = in_memory(skip)..in_memory(skip + range.end - range.start);
        if way == Way::Direct {
            scratch.wait();
        }
        let block = scratch.block(self.file.path(), in_memory(whole_len))?;
        let block = &mut block[..in_memory(whole_len)];
        let direct = |file: &DirectFile, block: &mut [u8]| {
            file.read_at_least(block, range.start - skip, wanted.end)
        };
        self.fill(way, block, wanted.clone(), range.start, direct)?;
        Ok(&block[wanted])
    }

    /// The best way for a range that is read piece by piece.
    pub(super) fn way_of(&self, range: &Range<u64>) -> Way {
        Way::of(self.residency(range))
    }

    fn direct(&self) -> Option<&DirectFile> {
        self.direct.get_or_init(|| DirectFile::open(&self.file)).as_ref()
    }

    /// Fills `destination` with the bytes from `offset` on, read this way.
    pub(super) fn read_one_way(
        &self,
        way: Way,
        destination: &mut [u8],
        offset: u64,
        scratch: &mut Scratch<'_>,
    ) -> tensorfile::Result<()> {
        let bounce = match way {
            Way::Buffered => &mut [],
            Way::Direct => {
                scratch.wait();
                scratch.bounce(self.file.path())
            }
        };
        let direct =
            |file: &DirectFile, memory: &mut [u8]| file.read_exact_at(memory, offset, bounce);
        let wanted = 0..destination.len();
        self.fill(way, destination, wanted, offset, direct)
    }

    /// Fills the wanted part of `memory` with the bytes from `offset` on: by `direct`, if that is the
    /// way, or through the cache.
    ///
    /// If the file has no direct reads or one fails for any reason, the buffered way reads the
    /// bytes or reports the error.
    fn fill(
        &self,
        way: Way,
        memory: &mut [u8],
        wanted: Range<usize>,
        offset: u64,
        direct: impl FnOnce(&DirectFile, &mut [u8]) -> io::Result<()>,
    ) -> tensorfile::Result<()> {
        let file = if way == Way::Direct { self.direct() } else { None };
        let byte_len = wanted.len() as u64;
        let way = match file.map(|file| direct(file, memory)) {
            Some(Ok(())) => Way::Direct,
            Some(Err(_)) | None => {
                self.file.read_exact_at(&mut memory[wanted], offset)?;
                Way::Buffered
            }
        };
        self.counters.add(way, byte_len);
        Ok(())
    }

    /// How much of a range is cached, if the way depends on it.
    fn residency(&self, range: &Range<u64>) -> Residency {
        match self.io {
            Io::Auto => residency::of(self.file.file(), range),
            Io::Buffered => Residency::Cached,
            Io::Direct => Residency::Absent,
        }
    }
}

/// Where a range is halved: on a page or as little before one as whole units need.
fn middle(range: &Range<u64>, unit_len: u64) -> u64 {
    let middle = range.start + (range.end - range.start) / 2;
    let middle = middle - middle % PAGE;
    middle - (middle - range.start) % unit_len
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use tensorfile::SourceFile;
    use tracing::Span;

    use super::super::Io;
    use super::super::direct::tests::sample;
    use super::super::os::cached_pages;
    use super::{MIN_HALF, PAGE, ShardReader, Way, middle};

    #[test]
    fn a_range_is_halved_between_units() {
        for start in [0, 1, 5, PAGE - 1, PAGE, 3 * PAGE + 7] {
            for unit_len in [1, 2, 4] {
                let range = start..start + 2 * MIN_HALF + unit_len;
                let found = middle(&range, unit_len);
                assert_eq!((found - start) % unit_len, 0, "{range:?} {unit_len}");
                assert!(found.next_multiple_of(PAGE) - found < unit_len, "{range:?} {unit_len}");
                let half = start + MIN_HALF;
                assert!(found <= half && half < found + PAGE + unit_len, "{range:?} {unit_len}");
            }
        }
    }

    /// Puts the first half of a file of 3 MiB into the page cache and no more of it; false if the
    /// system cannot.
    #[cfg(target_os = "linux")]
    fn half_cached(file: &SourceFile) -> bool {
        use rustix::fs::{Advice, fadvise, fsync};
        let file = file.file();
        fsync(file).unwrap();
        fadvise(file, 0, None, Advice::DontNeed).unwrap();
        // No reading ahead.
        fadvise(file, 0, None, Advice::Random).unwrap();
        let mut half = vec![0; 3 << 19];
        std::os::unix::fs::FileExt::read_exact_at(file, &mut half, 0).unwrap();
        let cached = |start| cached_pages(file, start, 3 << 19);
        cached(0) == Some((3 << 19) / PAGE) && cached(3 << 19) == Some(0)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn half_of_a_cached_range_is_read_in_each_way_and_no_unit_is_split() {
        let Some((_folder, file, bytes)) = sample("half_of_a_cached_range") else { return };
        if !half_cached(&file) {
            let message = "half_of_a_cached_range: NOT RUN, half of a file cannot be cached\n";
            std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
            return;
        }
        let reader = ShardReader::new(file, Io::Auto, Span::none());
        for (start, unit_len) in [(5, 4), (6, 2), (1, 4), (0, 1)] {
            let end = start + (bytes.len() as u64 - start) / unit_len * unit_len;
            let mut parts: Vec<(Way, Range<u64>)> = Vec::new();
            let mut read = |way, part| {
                parts.push((way, part));
                Ok(())
            };
            reader.by_way(start..end, unit_len, &mut read).unwrap();
            let mut at = start;
            for (way, part) in &parts {
                assert_eq!((part.start, (part.end - part.start) % unit_len), (at, 0), "{parts:?}");
                assert!(*way == Way::Buffered || part.end > 3 << 19, "{parts:?}");
                assert!(*way == Way::Direct || part.start < 3 << 19, "{parts:?}");
                at = part.end;
            }
            assert_eq!(at, end);
            let has = |way| parts.iter().any(|(found, _)| *found == way);
            assert!(has(Way::Buffered) && has(Way::Direct), "{parts:?}");
        }
    }
}
