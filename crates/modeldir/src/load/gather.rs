//! Parts of evenly spaced rows, one after the other.

use tensorfile::FloatCast;

use super::cast;
use super::memory::in_memory;
use super::reader::{ShardReader, Way};
use super::scratch::Scratch;
use crate::request::RowCut;

/// What is copied or converted from the page cache comes in pieces that stay in a processor's own
/// cache.
pub(super) const MAX_PIECE_BYTES: u64 = 256 << 10;

/// Reads a block of rows that starts at `start` in the file, and copies or converts the wanted runs
/// of each.
pub(super) fn read_block(
    reader: &ShardReader,
    start: u64,
    rows: &RowCut,
    cast: Option<FloatCast>,
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
        let filled = cast::take_place(cast, rows.row_len() * count, &mut destination);
        copy_rows(rows, count, cast, block, filled);
        row += count;
        reader.counters.add_gathered(piece.end - piece.start);
    }
    Ok(())
}

/// Copies or converts the wanted runs of the first `count` rows of a block, which starts with the
/// first byte that is wanted.
fn copy_rows(
    rows: &RowCut,
    count: u64,
    cast: Option<FloatCast>,
    block: &[u8],
    mut destination: &mut [u8],
) {
    for row in 0..count {
        let row_start = row * rows.stride;
        for run in &rows.runs {
            let filled = cast::take_place(cast, run.end - run.start, &mut destination);
            let run = &block[in_memory(row_start + run.start)..in_memory(row_start + run.end)];
            match cast {
                None => filled.copy_from_slice(run),
                Some(cast) => cast.convert(run, filled),
            }
        }
    }
}

/// Reads the wanted runs of each row by themselves.
pub(super) fn read_rows(
    reader: &ShardReader,
    start: u64,
    rows: &RowCut,
    cast: Option<FloatCast>,
    mut destination: &mut [u8],
    scratch: &mut Scratch<'_>,
) -> tensorfile::Result<()> {
    let way = reader.way_of(&(start..start + rows.byte_len()));
    for row in 0..rows.count {
        let row_start = start + row * rows.stride;
        for run in &rows.runs {
            let filled = cast::take_place(cast, run.end - run.start, &mut destination);
            let (start, end) = (row_start + run.start, row_start + run.end);
            match cast {
                None => reader.read_one_way(way, filled, start, scratch)?,
                Some(cast) => {
                    cast::read_one_way(reader, way, start..end, cast, filled, scratch)?;
                }
            }
        }
    }
    Ok(())
}
