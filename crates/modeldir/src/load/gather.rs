//! Parts of evenly spaced rows, one after the other.

use super::memory::in_memory;
use super::reader::{ShardReader, Way};
use super::scratch::Scratch;
use crate::request::RowCut;

/// Rows that are copied from the page cache come in pieces that stay in a processor's own cache.
const MAX_PIECE_BYTES: u64 = 256 << 10;

/// Reads a block of rows that starts at `start` in the file, and copies the wanted runs of each.
pub(super) fn read_block(
    reader: &ShardReader,
    start: u64,
    rows: &RowCut,
    mut destination: &mut [u8],
    scratch: &mut Scratch<'_>,
) -> tensorfile::Result<()> {
    let end = start + rows.byte_len();
    let way = reader.way_of(&(start..end));
    let rows_at_a_time = match way {
        Way::Direct => rows.count,
        Way::Buffered => (MAX_PIECE_BYTES / rows.stride.max(1)).max(1),
    };
    let mut row = 0;
    while row < rows.count {
        let count = rows_at_a_time.min(rows.count - row);
        // With what lies between this row and the next, so that all is read that was planned.
        let piece_end = end.min(start + rows.stride * (row + count));
        let piece = start + rows.stride * row..piece_end;
        let block = reader.read_block(way, &piece, scratch)?;
        let wanted = in_memory(rows.row_len() * count);
        let (filled, rest) = std::mem::take(&mut destination).split_at_mut(wanted);
        copy_rows(rows, count, block, filled);
        destination = rest;
        row += count;
        reader.counters.add_gathered(piece.end - piece.start);
    }
    Ok(())
}

/// Copies the wanted runs of the first `count` rows of a block, which starts with the first byte
/// that is wanted.
fn copy_rows(rows: &RowCut, count: u64, block: &[u8], mut destination: &mut [u8]) {
    for row in 0..count {
        let row_start = row * rows.stride;
        for run in &rows.runs {
            let run = in_memory(row_start + run.start)..in_memory(row_start + run.end);
            let (filled, rest) = std::mem::take(&mut destination).split_at_mut(run.len());
            filled.copy_from_slice(&block[run]);
            destination = rest;
        }
    }
}

/// Reads the wanted runs of each row by themselves.
pub(super) fn read_rows(
    reader: &ShardReader,
    start: u64,
    rows: &RowCut,
    mut destination: &mut [u8],
    scratch: &mut Scratch<'_>,
) -> tensorfile::Result<()> {
    let way = reader.way_of(&(start..start + rows.byte_len()));
    for row in 0..rows.count {
        let row_start = start + row * rows.stride;
        for run in &rows.runs {
            let len = in_memory(run.end - run.start);
            let (filled, rest) = std::mem::take(&mut destination).split_at_mut(len);
            reader.read_one_way(way, filled, row_start + run.start, scratch)?;
            destination = rest;
        }
    }
    Ok(())
}
