//! One open shard, and the way that its bytes come: from the page cache or past it.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use tensorfile::SourceFile;
use tracing::Span;

use super::direct::DirectFile;
use super::memory::in_memory;
use super::options::Io;
use super::residency::{self, Residency};
use super::scratch::Scratch;
use super::stats::Counters;
use super::storage::{self, Storage};
use crate::layout::PAGE;

/// Ranges of which a part is cached are halved down to this length.
const MIN_HALF: u64 = 1 << 20;

/// How bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Through the page cache.
    Buffered,
    /// Past it.
    Direct,
}

/// A shard that is open, read by several workers.
#[derive(Debug)]
pub(super) struct ShardReader {
    file: SourceFile,
    io: Io,
    /// The same file for direct reads, opened by the first one.
    direct: OnceLock<Option<DirectFile>>,
    pub(super) counters: Counters,
    pub(super) span: Span,
}

impl ShardReader {
    pub(super) fn new(file: SourceFile, io: Io, span: Span) -> Self {
        let io = match io {
            // There is nothing to choose: all of it is cached, or should be.
            Io::Auto if storage::of(file.file()) != Storage::Local => Io::Buffered,
            io => io,
        };
        Self { file, io, direct: OnceLock::new(), counters: Counters::default(), span }
    }

    pub(super) fn file(&self) -> &SourceFile {
        &self.file
    }

    /// Fills `destination` with the bytes from `offset` on.
    pub(super) fn read(
        &self,
        destination: &mut [u8],
        offset: u64,
        scratch: &mut Scratch<'_>,
    ) -> tensorfile::Result<()> {
        let range = offset..offset + destination.len() as u64;
        let mut rest = destination;
        self.by_way(range, 1, &mut |way, part| {
            let len = in_memory(part.end - part.start);
            let (filled, tail) = std::mem::take(&mut rest).split_at_mut(len);
            rest = tail;
            self.read_one_way(way, filled, part.start, scratch)
        })
    }

    /// Calls `read` with the parts of a range, in order, and the way that suits each. Parts are
    /// multiples of `element_len` long, as far as the range is.
    pub(super) fn by_way(
        &self,
        range: Range<u64>,
        element_len: u64,
        read: &mut dyn FnMut(Way, Range<u64>) -> tensorfile::Result<()>,
    ) -> tensorfile::Result<()> {
        let Range { start, end } = range;
        match (self.io, self.residency(&range)) {
            (Io::Auto, Residency::Partial { .. }) if end - start >= 2 * MIN_HALF => {
                let middle = start + (end - start) / 2;
                let middle = middle - middle % PAGE;
                let middle = middle - (middle - start) % element_len;
                self.by_way(start..middle, element_len, read)?;
                self.by_way(middle..end, element_len, read)
            }
            (_, residency) => read(way(residency), range),
        }
    }

    /// Reads a range into the memory of the worker, and returns it.
    pub(super) fn read_block<'s>(
        &self,
        way: Way,
        range: &Range<u64>,
        scratch: &'s mut Scratch<'_>,
    ) -> tensorfile::Result<&'s [u8]> {
        // A direct read brings whole blocks of the disk: those around the range too.
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

    /// The way for a range that is read piece by piece.
    pub(super) fn way_of(&self, range: &Range<u64>) -> Way {
        way(self.residency(range))
    }

    fn direct(&self) -> Option<&DirectFile> {
        self.direct.get_or_init(|| DirectFile::open(&self.file)).as_ref()
    }

    /// Fills `destination` with the bytes from `offset` on, in this way.
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
    /// Where the file has no direct reads, or one fails, whatever the cause, the other way reads the
    /// bytes or says what is wrong.
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

    /// How much of a range is cached, if that makes a difference.
    fn residency(&self, range: &Range<u64>) -> Residency {
        match self.io {
            Io::Auto => residency::of(self.file.file(), range),
            Io::Buffered => Residency::Cached,
            Io::Direct => Residency::Absent,
        }
    }
}

/// The way for a range of which this much is cached.
fn way(residency: Residency) -> Way {
    match residency {
        Residency::Absent => Way::Direct,
        Residency::Partial { cached, pages } if cached < pages / 2 => Way::Direct,
        Residency::Partial { .. } | Residency::Cached => Way::Buffered,
    }
}

#[cfg(test)]
mod tests {
    use tracing::Span;

    use super::super::direct::tests::sample;
    use super::{Io, Scratch, ShardReader};

    #[test]
    fn without_memory_to_bounce_a_direct_read_goes_through_the_cache() {
        let Some((_folder, file, bytes)) = sample("without_memory_to_bounce") else { return };
        let reader = ShardReader::new(file, Io::Direct, Span::none());
        let mut scratch = Scratch::new(&|| ());
        scratch.refuse_bounce();
        let mut memory = vec![0; 100_000];
        reader.read(&mut memory, 5, &mut scratch).unwrap();
        assert!(memory == bytes[5..100_005]);
        assert_eq!((reader.counters.direct(), reader.counters.buffered()), (0, 100_000));
    }
}
