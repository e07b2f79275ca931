//! Where the bytes of a plan go in memory, and which reads fill it; pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;

use tensorfile::{ByteRuns, Read};

use crate::plan::Part;
use crate::plan::request::Request;
use crate::plan::transform::Transform;
use crate::weights::index::{IndexedTensor, ShardId};

/// Maximum length of a read: long enough for full device speed, short enough to share among
/// threads.
const MAX_REQUEST_BYTES: u64 = 8 << 20;

/// Address and file offset agree modulo this where possible, so that direct reads move whole pages.
pub(crate) const PAGE: u64 = 4096;

/// Parts of at least this length start at a position congruent to their file offset modulo a page.
const LONG: u64 = 16 * PAGE;

/// A tensor that cannot directly follow the previous one starts on a multiple of this, or, if it is
/// copied, at a place congruent to its file offset modulo this.
const LINE: u64 = 64;

/// Maximum length of a block of rows that is read to copy parts of it: nearly as fast as the
/// longest read, and small enough for each worker to hold one.
pub(crate) const MAX_BLOCK_BYTES: u64 = 4 << 20;

/// Maximum length of the pieces that are copied or converted from the page cache: they stay in a
/// processor's own cache.
pub(crate) const MAX_PIECE_BYTES: u64 = 256 << 10;

/// Lays parts of tensors out in memory, shard by shard and in file order.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// The shard whose parts are being placed.
    open: Option<ShardLayout>,
    /// The requests of the shards already closed.
    requests: Vec<Request>,
    /// Bytes of memory by shard, for each closed shard that is read.
    memory: BTreeMap<ShardId, u64>,
}

impl Layout {
    /// An empty layout, with room for the requests of this many parts, most of which need one.
    pub(crate) fn for_parts(count: usize) -> Self {
        Self { requests: Vec::with_capacity(count), ..Self::default() }
    }

    /// Places the next part, by shard and in file order; returns its range in the memory of its
    /// shard.
    pub(crate) fn place(&mut self, tensor: IndexedTensor<'_>, part: &Part) -> Range<u64> {
        let shard = tensor.shard().id();
        let done = self.open.take_if(|open| open.shard != shard);
        self.close(done);
        let requests = &mut self.requests;
        let new = || ShardLayout::new(shard, mem::take(requests));
        self.open.get_or_insert_with(new).place_part(tensor, part)
    }

    /// The reads, and the bytes of memory by shard that they fill.
    pub(crate) fn finish(mut self) -> (Vec<Request>, BTreeMap<ShardId, u64>) {
        let done = self.open.take();
        self.close(done);
        (self.requests, self.memory)
    }

    fn close(&mut self, done: Option<ShardLayout>) {
        let Some(ShardLayout { shard, requests, memory_len }) = done else { return };
        self.requests = requests;
        if memory_len > 0 {
            self.memory.insert(shard, memory_len);
        }
    }
}

/// Lays the parts of one shard out in memory, in file order.
///
/// Positions in memory are `u64`, so that nothing can overflow: a shard is at most 2^63 bytes, and
/// padding adds less than that.
#[derive(Debug)]
struct ShardLayout {
    shard: ShardId,
    /// Those of earlier shards, then those of this one.
    requests: Vec<Request>,
    memory_len: u64,
}

impl ShardLayout {
    /// Starts a shard; its requests are appended to these.
    const fn new(shard: ShardId, requests: Vec<Request>) -> Self {
        Self { shard, requests, memory_len: 0 }
    }

    /// Places the next part in file order; returns its memory range.
    fn place_part(&mut self, tensor: IndexedTensor<'_>, part: &Part) -> Range<u64> {
        let transform = part.transform;
        let align = transform.dtype(tensor.dtype()).align() as u64;
        let file_range = tensor.file_range();
        match &part.runs {
            None => self.place(file_range, align, transform),
            Some(runs) => self.place_runs(file_range.start, runs, align, transform),
        }
    }

    /// Places the next range in file order; returns its memory range.
    ///
    /// A part directly follows the previous one where file and alignment allow it, so that one read
    /// serves both. Tensors are packed without padding in the file. One that would be misaligned in
    /// memory moves to an aligned place and gets a read of its own; so does a long one that a
    /// direct read could not write straight to its place. Converted bytes pass through the worker's
    /// buffer in any case.
    fn place(&mut self, file_range: Range<u64>, align: u64, transform: Transform) -> Range<u64> {
        let Range { start: file_start, end: file_end } = file_range;
        let byte_len = file_end.saturating_sub(file_start);
        let last = self.requests.last().filter(|last| last.shard == self.shard);
        let follows = last.is_some_and(|last| last.ends_at(file_start, transform));
        let is_congruent = self.memory_len % PAGE == file_start % PAGE;
        let suits_reads = !transform.is_copy() || is_congruent || byte_len < LONG;
        let suits = is_aligned(self.memory_len, align) && suits_reads;
        let start = if follows && suits {
            self.memory_len
        } else if transform.is_copy() {
            self.new_start(file_start, byte_len, align)
        } else {
            self.new_line()
        };
        let end = start.saturating_add(transform.memory_bytes(byte_len));
        if byte_len > 0 {
            self.push(file_range, start, transform);
            self.memory_len = end;
        }
        start..end
    }

    /// Places runs of a tensor that starts at `file_start`, contiguous in memory; returns their
    /// memory range.
    fn place_runs(
        &mut self,
        file_start: u64,
        runs: &ByteRuns,
        align: u64,
        transform: Transform,
    ) -> Range<u64> {
        if runs.num_runs() == 1 {
            return self.place(in_file(file_start, &runs.span()), align, transform);
        }
        let start = self.new_line();
        let mut end = start;
        for read in runs.reads(MAX_BLOCK_BYTES) {
            let (read, memory_start) = (read.shifted(file_start), end);
            end = memory_start.saturating_add(transform.memory_bytes(read.wanted_len()));
            match read {
                Read::Whole(range) => self.push(range, memory_start, transform),
                read => {
                    let (shard, memory_range) = (self.shard, memory_start..end);
                    self.requests.push(Request { shard, memory_range, read, transform });
                }
            }
        }
        if end > start {
            self.memory_len = end;
        }
        start..end
    }

    /// The first free line.
    fn new_line(&self) -> u64 {
        self.memory_len.next_multiple_of(LINE)
    }

    /// The first free aligned place congruent to the file offset, modulo a page for long parts and
    /// modulo a line for others; the first free line where that would not be aligned.
    fn new_start(&self, file_start: u64, byte_len: u64, align: u64) -> u64 {
        let modulus = if byte_len >= LONG { PAGE } else { LINE };
        let rest = |position: u64| position.checked_rem(modulus).unwrap_or(0);
        let wanted = rest(file_start);
        if !is_aligned(wanted, align) {
            return self.new_line();
        }
        let skip = wanted.saturating_add(modulus).saturating_sub(rest(self.memory_len));
        self.memory_len.saturating_add(rest(skip))
    }

    /// Adds reads for a range: the last read grows up to the maximum length, and the rest is cut at
    /// multiples of that length in the file, or just before where that would cut a unit of the
    /// transform.
    fn push(&mut self, file_range: Range<u64>, memory_start: u64, transform: Transform) {
        let (mut at, mut memory_at) = (file_range.start, memory_start);
        let unit_len = transform.unit_len();
        while at < file_range.end {
            let end = piece_end(at, MAX_REQUEST_BYTES, unit_len).min(file_range.end);
            let byte_len = end.saturating_sub(at);
            let memory_end = memory_at.saturating_add(transform.memory_bytes(byte_len));
            let (shard, memory_range) = (self.shard, memory_at..memory_end);
            let next = Request { shard, memory_range, read: Read::Whole(at..end), transform };
            let starts_piece = last_of_unit(at, unit_len) % MAX_REQUEST_BYTES < unit_len;
            let last = self.requests.last_mut().filter(|_| !starts_piece);
            if !last.is_some_and(|last| last.join(&next)) {
                self.requests.push(next);
            }
            (at, memory_at) = (end, memory_end);
        }
    }
}

/// The maximum bytes of memory for a part of this length in memory, with padding before it.
pub(crate) const fn most_memory(byte_len: u64) -> u64 {
    byte_len.saturating_add(if byte_len >= LONG { PAGE } else { LINE })
}

/// The end of a piece that starts at `at`: the next multiple of `longest` in the file, or less than
/// a unit before it, so that no unit is cut.
pub(crate) fn piece_end(at: u64, longest: u64, unit_len: u64) -> u64 {
    let last = last_of_unit(at, unit_len);
    let past_boundary = last.checked_rem(longest).unwrap_or(0);
    let boundary = last.saturating_sub(past_boundary).saturating_add(longest);
    let cut_off = boundary.saturating_sub(at).checked_rem(unit_len).unwrap_or(0);
    boundary.saturating_sub(cut_off)
}

/// The last byte of a unit that starts at `at`.
fn last_of_unit(at: u64, unit_len: u64) -> u64 {
    at.saturating_add(unit_len).saturating_sub(1)
}

fn is_aligned(position: u64, align: u64) -> bool {
    position.checked_rem(align) == Some(0)
}

/// The file range of some bytes of a tensor that starts at `file_start`.
fn in_file(file_start: u64, run: &Range<usize>) -> Range<u64> {
    file_start.saturating_add(run.start as u64)..file_start.saturating_add(run.end as u64)
}

/// A length or position in memory as `usize`; saturates, since an allocation of that length fails.
pub(crate) fn in_memory(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "of small numbers")]
mod tests;
