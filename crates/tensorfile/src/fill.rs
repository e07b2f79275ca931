//! Fills memory with the runs of a selection.

use std::mem;
use std::ops::Range;

use crate::read::{Read, in_memory};
use crate::{BufferMut, ByteRuns, Result};

/// Most bytes of one read of rows.
const MAX_BLOCK: u64 = 1 << 20;

/// Fills `place` with the runs, one after the other.
///
/// `read` fills a slice with the tensor's bytes from an offset on.
pub(crate) fn fill(
    runs: &ByteRuns,
    mut place: &mut [u8],
    mut read: impl FnMut(&mut [u8], u64) -> Result<()>,
) -> Result<()> {
    let mut scratch: Option<BufferMut> = None;
    let longest = in_memory(MAX_BLOCK).min(runs.span().len());
    for next in runs.reads(MAX_BLOCK) {
        match next {
            Read::Whole(range) => read(take(&mut place, &range), range.start)?,
            Read::Runs(rows) => {
                for run in rows.iter() {
                    read(take(&mut place, &run), run.start)?;
                }
            }
            Read::Block(rows) => {
                let scratch = match &mut scratch {
                    Some(scratch) => scratch,
                    none => none.insert(BufferMut::with_len(longest)?),
                };
                let span = rows.span();
                let block = &mut scratch.as_mut_slice()[..in_memory(span.end - span.start)];
                read(block, span.start)?;
                rows.take_from(block, |run| {
                    take(&mut place, &(0..run.len() as u64)).copy_from_slice(run);
                });
            }
        }
    }
    Ok(())
}

/// Splits the place of a run off the front.
fn take<'p>(place: &mut &'p mut [u8], run: &Range<u64>) -> &'p mut [u8] {
    let (taken, rest) = mem::take(place).split_at_mut(in_memory(run.end - run.start));
    *place = rest;
    taken
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::fill;
    use crate::{Dtype, Selection};

    /// Which gaps are read too, and how much at once.
    const MAX_GAP: usize = 16 << 10;
    const MAX_BLOCK: usize = 1 << 20;

    /// The reads of a selection of a U8 tensor of this shape; checks the result.
    fn reads(shape: &[usize], selection: &Selection) -> Vec<Range<usize>> {
        let num_bytes = shape.iter().product();
        let mut state = 1_u32;
        let mut next_byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        };
        let tensor: Vec<u8> = (0..num_bytes).map(|_| next_byte()).collect();
        let runs = selection.lower_shape(Dtype::U8, shape).unwrap();
        let mut reads = Vec::new();
        let mut out = vec![0; runs.byte_len()];
        fill(&runs, &mut out, |bytes, start| {
            let start = usize::try_from(start).unwrap();
            let range = start..start + bytes.len();
            bytes.copy_from_slice(&tensor[range.clone()]);
            reads.push(range);
            Ok(())
        })
        .unwrap();
        let expected: Vec<u8> = runs.iter().flat_map(|run| tensor[run].to_vec()).collect();
        assert!(out == expected, "{selection:?}");
        reads
    }

    #[test]
    fn one_run_is_one_read_of_any_length() {
        let rows = Selection::all().with_range(0, 1..3);
        assert_eq!(reads(&[4, MAX_BLOCK], &rows), vec![MAX_BLOCK..3 * MAX_BLOCK; 1]);
    }

    #[test]
    fn nothing_is_read_for_nothing() {
        assert_eq!(reads(&[4, 4], &Selection::all().with_range(0, 2..2)), []);
        assert_eq!(reads(&[0, 4], &Selection::all()), []);
    }

    #[test]
    fn near_runs_share_reads_no_longer_than_the_span() {
        let column = Selection::all().with_range(1, 3..5);
        assert_eq!(reads(&[100, 10], &column), vec![3..995; 1]);
        let reads = reads(&[400, MAX_GAP], &column);
        assert_eq!(reads.len(), 7);
        assert!(reads.iter().all(|read| read.len() <= MAX_BLOCK));
    }

    #[test]
    fn far_runs_are_read_alone() {
        let column = Selection::all().with_range(1, 0..1);
        assert_eq!(reads(&[3, MAX_GAP + 1], &column).len(), 1);
        assert_eq!(reads(&[3, MAX_GAP + 2], &column).len(), 3);
    }

    #[test]
    fn short_runs_near_each_other_share_a_read_where_they_have_no_rows() {
        let near = Selection::all().with_ranges(0, vec![0..2, 3..4, 6..7, 5..6, 9..10]);
        assert_eq!(reads(&[10, 4096], &near), [0..7 << 12, 5 << 12..10 << 12]);
        let far = Selection::all().with_ranges(0, vec![0..2, 7..8]);
        assert_eq!(reads(&[8, 4096], &far), [0..2 << 12, 7 << 12..8 << 12]);
        // Long runs are not copied to save a read.
        let long = Selection::all().with_ranges(0, vec![0..5, 6..11]);
        assert_eq!(reads(&[11, 4096], &long), [0..5 << 12, 6 << 12..11 << 12]);
    }

    #[test]
    fn runs_that_go_back_start_anew() {
        let swapped = Selection::all().with_ranges(0, vec![2..4, 0..2, 1..3]);
        assert_eq!(reads(&[4, 2], &swapped), [4..8, 0..4, 2..6]);
    }
}
