//! One open shard, and the way that its bytes come: from the page cache or past it.

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
const MIN_HALF: usize = 1 << 20;

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
        let end = offset + destination.len() as u64;
        match (self.io, self.residency(&(offset..end))) {
            (Io::Auto, Residency::Partial { .. }) if destination.len() >= 2 * MIN_HALF => {
                let middle = offset + destination.len() as u64 / 2;
                let middle = middle - middle % PAGE;
                let (first, second) = destination.split_at_mut(in_memory(middle - offset));
                self.read(first, offset, scratch)?;
                self.read(second, middle, scratch)
            }
            (_, residency) => self.read_one_way(way(residency), destination, offset, scratch),
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
        let direct = (way == Way::Direct).then(|| self.direct()).flatten();
        let read = direct.map(|file| file.read_at_least(block, range.start - skip, wanted.end));
        let way = match read {
            Some(Ok(())) => Way::Direct,
            // As for other reads, the other way reads the bytes or says what is wrong.
            Some(Err(_)) | None => {
                self.file.read_exact_at(&mut block[wanted.clone()], range.start)?;
                Way::Buffered
            }
        };
        self.counters.add(way, wanted.len() as u64);
        Ok(&block[wanted])
    }

    /// The way for a range that is read piece by piece.
    pub(super) fn way_of(&self, range: &Range<u64>) -> Way {
        way(self.residency(range))
    }

    fn direct(&self) -> Option<&DirectFile> {
        self.direct.get_or_init(|| DirectFile::open(&self.file)).as_ref()
    }

    /// Fills `destination` in this way, or through the cache if the other one fails.
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
                scratch.bounce(self.file.path())?
            }
        };
        self.read_with(way, destination, offset, bounce)
    }

    fn read_with(
        &self,
        way: Way,
        destination: &mut [u8],
        offset: u64,
        bounce: &mut [u8],
    ) -> tensorfile::Result<()> {
        let len = destination.len() as u64;
        if way == Way::Direct {
            let read = self.direct().map(|file| file.read_exact_at(destination, offset, bounce));
            if matches!(read, Some(Ok(()))) {
                self.counters.add(Way::Direct, len);
                return Ok(());
            }
            // There is no such way for this file, or it failed: whatever the cause, the other way
            // reads the bytes or says what is wrong.
        }
        self.file.read_exact_at(destination, offset)?;
        self.counters.add(Way::Buffered, len);
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
