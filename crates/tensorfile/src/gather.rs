//! Reads scattered runs of bytes with fewer reads than there are runs.

use std::iter::{Peekable, Take};
use std::ops::Range;

use crate::{BufferMut, ByteRuns, Result};

/// Bytes between two runs that are read along rather than skipped with a read of their own.
const MAX_GAP: usize = 16 << 10;

/// Bytes that runs and their gaps may span to be read at once.
const MAX_SPAN: usize = 1 << 20;

/// Fills `out` with the runs, one after the other.
///
/// `read` fills a slice with bytes from an offset of the tensor. It is called once for a run that
/// is far from its neighbours, and once for every group of runs that are near each other.
pub(crate) fn gather(
    runs: &ByteRuns,
    mut out: &mut [u8],
    mut read: impl FnMut(&mut [u8], usize) -> Result<()>,
) -> Result<()> {
    let mut scratch: Option<BufferMut> = None;
    let mut rest = runs.iter().peekable();
    while let Some(Group { span, runs: members }) = next_group(&mut rest) {
        if members.len() == 1 {
            read(split_off(&mut out, span.len()), span.start)?;
            continue;
        }
        let scratch = match &mut scratch {
            Some(scratch) => scratch,
            none => none.insert(BufferMut::with_len(MAX_SPAN.min(runs.span().len()))?),
        };
        let bytes = &mut scratch.as_mut_slice()[..span.len()];
        read(bytes, span.start)?;
        for run in members {
            let run = run.start - span.start..run.end - span.start;
            split_off(&mut out, run.len()).copy_from_slice(&bytes[run]);
        }
    }
    Ok(())
}

/// Runs that are read at once, and the bytes from the first to the last of them.
struct Group<I: Iterator> {
    span: Range<usize>,
    runs: Take<Peekable<I>>,
}

fn next_group<I>(rest: &mut Peekable<I>) -> Option<Group<I>>
where
    I: Iterator<Item = Range<usize>> + Clone,
{
    let from_here = rest.clone();
    let mut span = rest.next()?;
    let mut num_runs = 1;
    let is_near = |span: &Range<usize>, next: &Range<usize>| {
        let gap = next.start.checked_sub(span.end);
        gap.is_some_and(|gap| gap <= MAX_GAP) && next.end - span.start <= MAX_SPAN
    };
    while let Some(next) = rest.next_if(|next| is_near(&span, next)) {
        span.end = next.end;
        num_runs += 1;
    }
    Some(Group { span, runs: from_here.take(num_runs) })
}

/// Takes the first `len` bytes off.
fn split_off<'a>(out: &mut &'a mut [u8], len: usize) -> &'a mut [u8] {
    let (first, rest) = std::mem::take(out).split_at_mut(len);
    *out = rest;
    first
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::{MAX_GAP, MAX_SPAN, gather};
    use crate::{Dtype, Selection};

    /// The reads that a selection of a U8 tensor of this shape takes; the result is checked.
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
        gather(&runs, &mut out, |bytes, start| {
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
        assert_eq!(reads(&[4, MAX_SPAN], &rows), vec![MAX_SPAN..3 * MAX_SPAN; 1]);
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
        assert!(reads.iter().all(|read| read.len() <= MAX_SPAN));
    }

    #[test]
    fn far_runs_are_read_alone() {
        let column = Selection::all().with_range(1, 0..1);
        assert_eq!(reads(&[3, MAX_GAP + 1], &column).len(), 1);
        assert_eq!(reads(&[3, MAX_GAP + 2], &column).len(), 3);
    }

    #[test]
    fn runs_that_go_back_start_anew() {
        let swapped = Selection::all().with_ranges(0, vec![2..4, 0..2, 1..3]);
        assert_eq!(reads(&[4, 2], &swapped), [4..8, 0..4, 2..6]);
    }
}
