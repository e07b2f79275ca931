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
                let middle = start + (end - start) / 2;
                let middle = middle - middle % PAGE;
                let middle = middle - (middle - start) % unit_len;
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
