//! Fills a place in memory with the bytes of one request, as stored or transformed.

use std::mem;
use std::ops::Range;

use tensorfile::{Read, Rows};

use super::reader::ShardReader;
use super::scratch::Scratch;
use super::way::Way;
use crate::plan::layout::{MAX_BLOCK_BYTES, MAX_PIECE_BYTES, in_memory, piece_end};
use crate::plan::transform::Transform;

/// Reads bytes of a shard and fills `place` with the wanted ones, transformed if asked.
pub(super) fn fill(
    reader: &ShardReader,
    read: &Read,
    transform: Transform,
    place: &mut [u8],
    scratch: &mut Scratch<'_>,
) -> tensorfile::Result<()> {
    let mut place = Place { rest: place, transform };
    match read {
        Read::Whole(range) => {
            reader.by_way(range.clone(), transform.unit_len(), &mut |way, part| {
                fill_range(reader, way, part, &mut place, scratch)
            })
        }
        Read::Runs(rows) => {
            let way = reader.way_of(&rows.span());
            rows.iter().try_for_each(|run| fill_range(reader, way, run, &mut place, scratch))
        }
        Read::Block(rows) => fill_from_block(reader, rows, &mut place, scratch),
    }
}

/// The unfilled rest of a request's place; it is filled from the front.
struct Place<'p> {
    rest: &'p mut [u8],
    transform: Transform,
}

impl<'p> Place<'p> {
    /// Takes the place of this many stored bytes off the front.
    fn take(&mut self, stored_len: u64) -> &'p mut [u8] {
        let len = in_memory(self.transform.memory_bytes(stored_len));
        let (taken, rest) = mem::take(&mut self.rest).split_at_mut(len);
        self.rest = rest;
        taken
    }

    /// Fills the front of the place with these stored bytes, transformed if asked.
    fn put(&mut self, stored: &[u8]) {
        self.transform.apply(stored, self.take(stored.len() as u64));
    }
}

/// Reads a whole range: straight to its place if nothing transforms the bytes, or else piece by
/// piece through the worker's buffer.
fn fill_range(
    reader: &ShardReader,
    way: Way,
    range: Range<u64>,
    place: &mut Place<'_>,
    scratch: &mut Scratch<'_>,
) -> tensorfile::Result<()> {
    let Range { start, end } = range;
    if place.transform.is_copy() {
        return reader.read_one_way(way, place.take(end - start), start, scratch);
    }
    let mut at = start;
    while at < end {
        let piece = at..piece_end(at, longest_piece(way), place.transform.unit_len()).min(end);
        at = piece.end;
        place.put(reader.read_block(way, &piece, scratch)?);
    }
    Ok(())
}

/// Reads several rows at a time, with the bytes between their runs, into the worker's buffer and
/// copies the runs from there.
fn fill_from_block(
    reader: &ShardReader,
    rows: &Rows,
    place: &mut Place<'_>,
    scratch: &mut Scratch<'_>,
) -> tensorfile::Result<()> {
    let Range { start, end } = rows.span();
    let way = reader.way_of(&(start..end));
    let mut pieces = rows.pieces(longest_piece(way) / rows.row.stride.max(1)).peekable();
    while let Some(piece) = pieces.next() {
        // Includes the bytes up to the next row, so that all planned bytes are read.
        let range = piece.start..pieces.peek().map_or(end, |next| next.start);
        let block = reader.read_block(way, &range, scratch)?;
        // Of its own, so that it need not be in memory: rows may be short.
        let mut place = Place { rest: place.take(piece.byte_len()), transform: place.transform };
        piece.take_from(block, |run| place.put(run));
        reader.counters.add_gathered(range.end - range.start);
    }
    Ok(())
}

/// The most bytes that pass through the worker's buffer at once: a good length for a disk, or one
/// that stays in a core's own cache while it is copied.
fn longest_piece(way: Way) -> u64 {
    match way {
        Way::Direct => MAX_BLOCK_BYTES,
        Way::Buffered => MAX_PIECE_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tensorfile::{Dtype, Float, FloatCast, Read, SourceFile};
    use tracing::Span;

    use super::super::Io;
    use super::super::direct::tests::sample;
    use super::super::reader::ShardReader;
    use super::super::scratch::Scratch;
    use super::{Transform, fill};

    #[test]
    fn every_direct_read_calls_the_hook_first_and_no_other_does() {
        let Some((_folder, file, bytes)) = sample("every_direct_read") else { return };
        let path = file.path().to_owned();
        let cast = Transform::Cast(FloatCast::new(Dtype::BF16, Float::F32).unwrap());
        for (io, per_read) in [(Io::Direct, 1), (Io::Buffered, 0)] {
            let file = SourceFile::open(&path).unwrap();
            let reader = ShardReader::new(file, io, Span::none());
            for (transform, len) in [(Transform::Copy, 100_000), (cast, 200_000)] {
                let calls = Cell::new(0);
                let hook = || calls.set(calls.get() + 1);
                let mut scratch = Scratch::new(&hook);
                let mut memory = vec![0; len];
                fill(&reader, &Read::Whole(4..100_004), transform, &mut memory, &mut scratch)
                    .unwrap();
                assert_eq!(calls.get(), per_read, "{io:?} {transform:?}");
                assert_eq!(scratch.has_waited(), per_read > 0);
                assert!(transform != Transform::Copy || memory == bytes[4..100_004]);
            }
        }
    }

    #[test]
    fn without_memory_to_bounce_a_direct_read_goes_through_the_cache() {
        let Some((_folder, file, bytes)) = sample("without_memory_to_bounce") else { return };
        let reader = ShardReader::new(file, Io::Direct, Span::none());
        let mut scratch = Scratch::new(&|| ());
        scratch.refuse_bounce();
        let mut memory = vec![0; 100_000];
        let read = Read::Whole(5..100_005);
        fill(&reader, &read, Transform::Copy, &mut memory, &mut scratch).unwrap();
        assert!(memory == bytes[5..100_005]);
        assert_eq!((reader.counters.direct(), reader.counters.buffered()), (0, 100_000));
    }
}
