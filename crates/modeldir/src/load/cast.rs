//! Reads whose elements are converted on their way to memory, piece by piece.

use std::ops::Range;

use tensorfile::FloatCast;

use super::gather::MAX_PIECE_BYTES;
use super::memory::in_memory;
use super::reader::{ShardReader, Way};
use super::scratch::Scratch;
use crate::layout::{MAX_BLOCK_BYTES, element_len, piece_end};

/// Reads whole elements, and fills `destination` with what they are converted to.
pub(super) fn read(
    reader: &ShardReader,
    range: Range<u64>,
    cast: FloatCast,
    mut destination: &mut [u8],
    scratch: &mut Scratch<'_>,
) -> tensorfile::Result<()> {
    reader.by_way(range, element_len(Some(cast)), &mut |way, part| {
        let filled = take_place(Some(cast), part.end - part.start, &mut destination);
        read_one_way(reader, way, part, cast, filled, scratch)
    })
}

/// Does the same in this way, or through the cache if the other one fails.
pub(super) fn read_one_way(
    reader: &ShardReader,
    way: Way,
    range: Range<u64>,
    cast: FloatCast,
    mut destination: &mut [u8],
    scratch: &mut Scratch<'_>,
) -> tensorfile::Result<()> {
    let longest = match way {
        Way::Buffered => MAX_PIECE_BYTES,
        Way::Direct => MAX_BLOCK_BYTES,
    };
    let mut at = range.start;
    while at < range.end {
        let end = piece_end(at, longest, element_len(Some(cast))).min(range.end);
        let filled = take_place(Some(cast), end - at, &mut destination);
        cast.convert(reader.read_block(way, &(at..end), scratch)?, filled);
        at = end;
    }
    Ok(())
}

/// Takes the place for this many bytes of a file off the front of `destination`.
pub(super) fn take_place<'d>(
    cast: Option<FloatCast>,
    stored_len: u64,
    destination: &mut &'d mut [u8],
) -> &'d mut [u8] {
    let len = in_memory(cast.map_or(stored_len, |cast| cast.byte_len(stored_len)));
    let (taken, rest) = std::mem::take(destination).split_at_mut(len);
    *destination = rest;
    taken
}
