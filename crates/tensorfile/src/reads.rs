//! The reads of a selection: ranges of bytes, and evenly spaced rows. Pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use crate::byte_runs::ByteRuns;

/// The longest gap between two runs of one read. A separate read costs about as much as copying
/// this many bytes, and pages of cache and disk are 4 KiB anyway.
const MAX_GAP: u64 = 16 << 10;

/// One or more reads, and the runs taken of their bytes.
///
/// Positions are those of a file, or relative to the start of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Read {
    /// One read of a range, all of which is taken.
    Whole(Range<u64>),
    /// One read of rows with the gaps between their runs; the runs are taken.
    Block(Rows),
    /// A read for each run of the rows, without the gaps.
    Runs(Rows),
}

/// Evenly spaced rows, with the same runs of bytes taken from each.
///
/// A cut of the columns of a matrix is one of these, however many rows there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rows {
    /// The position of the first byte taken of the first row.
    pub start: u64,
    /// Bytes from one row to the next.
    pub stride: u64,
    /// Number of rows.
    pub count: u64,
    /// The runs taken of each row, relative to its first taken byte, in the order of the result;
    /// none empty. Shared by the rows of one selection.
    pub runs: Arc<[Range<u64>]>,
}

impl Read {
    /// The number of bytes read.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        match self {
            Self::Whole(range) => len(range),
            Self::Block(rows) => len(&rows.span()),
            Self::Runs(rows) => rows.byte_len(),
        }
    }

    /// The number of bytes taken of those read.
    #[must_use]
    pub fn wanted_len(&self) -> u64 {
        match self {
            Self::Whole(range) => len(range),
            Self::Block(rows) | Self::Runs(rows) => rows.byte_len(),
        }
    }

    /// The range from the first byte taken to the last.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        match self {
            Self::Whole(range) => range.clone(),
            Self::Block(rows) | Self::Runs(rows) => rows.span(),
        }
    }

    /// The same reads, moved by this many bytes: in the file in which the tensor starts there.
    #[must_use]
    pub fn shifted(self, by: u64) -> Self {
        let shifted = |rows: Rows| Rows { start: rows.start.saturating_add(by), ..rows };
        match self {
            Self::Whole(range) => {
                Self::Whole(range.start.saturating_add(by)..range.end.saturating_add(by))
            }
            Self::Block(rows) => Self::Block(shifted(rows)),
            Self::Runs(rows) => Self::Runs(shifted(rows)),
        }
    }
}

impl Rows {
    /// The number of bytes taken of each row.
    #[must_use]
    pub fn row_len(&self) -> u64 {
        self.runs.iter().map(len).fold(0, u64::saturating_add)
    }

    /// The number of bytes taken of all rows.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.row_len().saturating_mul(self.count)
    }

    /// The range from the first byte taken to the last.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        let row_end = self.runs.iter().map(|run| run.end).max().unwrap_or(0);
        let last_row = self.stride.saturating_mul(self.count.saturating_sub(1));
        self.start..self.start.saturating_add(last_row).saturating_add(row_end)
    }

    /// The rows in pieces of at most this many, and at least one.
    pub fn pieces(&self, rows: u64) -> impl Iterator<Item = Self> + use<> {
        let mut rest = self.clone();
        iter::from_fn(move || {
            let piece = Self { count: rest.count.min(rows.max(1)), ..rest.clone() };
            rest.count = rest.count.saturating_sub(piece.count);
            rest.start = rest.start.saturating_add(rest.stride.saturating_mul(piece.count));
            (piece.count > 0).then_some(piece)
        })
    }

    /// The runs of all rows, in the order of the result.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        (0..self.count).flat_map(|row| {
            let start = self.start.saturating_add(self.stride.saturating_mul(row));
            let at = move |run: &Range<u64>| {
                start.saturating_add(run.start)..start.saturating_add(run.end)
            };
            self.runs.iter().map(at)
        })
    }

    /// Calls `take` with each run of the rows, in the order of the result.
    ///
    /// # Panics
    ///
    /// If `block`, the bytes of the [`span`](Self::span) of the rows, is shorter than that.
    pub fn take_from(&self, block: &[u8], mut take: impl FnMut(&[u8])) {
        let mut row_start = 0_u64;
        for _ in 0..self.count {
            for run in &*self.runs {
                let ends = [run.start, run.end].map(|end| in_memory(row_start.saturating_add(end)));
                let [start, end] = ends;
                take(block.get(start..end).expect("the block is as long as the span of the rows"));
            }
            row_start = row_start.saturating_add(self.stride);
        }
    }

    /// The mean gap between two runs, in bytes.
    fn gap(&self) -> u64 {
        let gaps = self.stride.saturating_sub(self.row_len());
        gaps.checked_div(self.runs.len() as u64).unwrap_or(0)
    }

    /// The reads of these rows, as in [`ByteRuns::reads`].
    fn reads(&self, longest: u64) -> impl Iterator<Item = Read> + use<> {
        let is_block = self.gap() <= MAX_GAP;
        let bytes_per_row = if is_block { self.stride } else { self.row_len() };
        let pieces = self.pieces(longest.checked_div(bytes_per_row).unwrap_or(longest));
        pieces.flat_map(move |rows| {
            let read = if is_block { Read::Block } else { Read::Runs };
            let single = (rows.count == 1).then(|| rows.reads_of_one(longest));
            let several = (rows.count > 1).then(|| read(rows));
            single.into_iter().flatten().chain(several)
        })
    }

    /// The reads of a single row: one for each run, or for several short ones near each other.
    fn reads_of_one(&self, longest: u64) -> impl Iterator<Item = Read> + use<> {
        let Self { start, ref runs, .. } = *self;
        let (runs, mut next) = (Arc::clone(runs), 0_usize);
        iter::from_fn(move || {
            let rest = runs.get(next..)?;
            let first = rest.first()?.start;
            let is_near = |pair: &&[Range<u64>]| match pair {
                [a, b] => are_near(a, b) && len(&(first..b.end)) <= longest,
                _ => false,
            };
            let num_near = rest.windows(2).take_while(is_near).count();
            let together = rest.get(..=num_near)?;
            next = next.saturating_add(together.len());
            let start = start.saturating_add(first);
            Some(match together {
                [run] => Read::Whole(start..start.saturating_add(len(run))),
                _ => {
                    let from_first = |run: &Range<u64>| {
                        run.start.saturating_sub(first)..run.end.saturating_sub(first)
                    };
                    let runs = together.iter().map(from_first).collect();
                    Read::Block(Self { start, stride: 0, count: 1, runs })
                }
            })
        })
    }
}

impl ByteRuns {
    /// The reads of the runs, in the order of the result, relative to the start of the tensor.
    ///
    /// Small gaps between runs are read too, up to 16 KiB per run. A block has at most `longest`
    /// bytes, and of the rows of a [`Read::Runs`] at most that many are taken; a
    /// [whole](Read::Whole) run has no limit.
    pub fn reads(&self, longest: u64) -> impl Iterator<Item = Read> {
        let Range { start, end } = self.span();
        let only = (self.num_runs() == 1).then_some(Read::Whole(start as u64..end as u64));
        let num_groups = if only.is_some() { 0 } else { usize::MAX };
        let of_rows = self.rows().take(num_groups).flat_map(move |rows| rows.reads(longest));
        only.into_iter().chain(of_rows)
    }
}

/// Whether two runs and the gap between them are so short that one read is better.
fn are_near(run: &Range<u64>, next: &Range<u64>) -> bool {
    let from_end = next.end.checked_sub(run.end).filter(|_| next.start >= run.end);
    len(run) <= MAX_GAP && from_end.is_some_and(|bytes| bytes <= MAX_GAP)
}

fn len(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// A position in memory; the largest `usize` if it does not fit.
pub(crate) fn in_memory(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "of small numbers")]
#[expect(clippy::single_range_in_vec_init, reason = "lists of one run are meant")]
mod tests {
    use std::ops::Range;

    use proptest::prelude::*;

    use super::{MAX_GAP, Read, Rows, in_memory};
    use crate::{Dtype, Selection};

    /// The reads of a selection of an 8-bit tensor of this shape.
    fn reads(shape: &[usize], selection: &Selection, longest: u64) -> Vec<Read> {
        selection.lower_shape(Dtype::U8, shape).unwrap().reads(longest).collect()
    }

    fn rows(start: u64, stride: u64, count: u64, runs: &[Range<u64>]) -> Rows {
        Rows { start, stride, count, runs: runs.into() }
    }

    #[test]
    fn what_lies_between_decides_how_rows_are_read() {
        let gap = in_memory(MAX_GAP);
        let column = |end| Selection::all().with_range(1, 5..end);
        // Small gaps, then too large ones, then one byte too many in a single row.
        let block = Read::Block(rows(5, MAX_GAP + 1, 3, &[0..1]));
        assert_eq!(reads(&[3, gap + 1], &column(6), 1 << 20), [block]);
        let runs = Read::Runs(rows(5, MAX_GAP + 2, 3, &[0..1]));
        assert_eq!(reads(&[3, gap + 2], &column(6), 1 << 20), [runs]);
        assert_eq!(reads(&[1, gap + 2], &column(6), 1 << 20), [Read::Whole(5..6)]);
        assert_eq!(reads(&[3, 10], &Selection::all(), 8), [Read::Whole(0..30)]);
        assert_eq!(reads(&[3, 10], &column(5), 8), []);
    }

    #[test]
    fn reads_are_no_longer_than_they_may_be_where_they_are_not_of_one_run() {
        let column = Selection::all().with_range(1, 2..4);
        let block = |start, count| Read::Block(rows(start, 10, count, &[0..2]));
        assert_eq!(reads(&[5, 10], &column, 20), [block(2, 2), block(22, 2), Read::Whole(42..44)]);
        // Two rows do not fit.
        let single = [2..4, 12..14, 22..24].map(Read::Whole);
        assert_eq!(reads(&[3, 10], &column, 19), single);
        // Of runs read one by one, only the bytes taken count.
        let far = Selection::all().with_range(1, 0..3);
        let runs = |start, count| Read::Runs(rows(start, 20_000, count, &[0..3]));
        assert_eq!(reads(&[4, 20_000], &far, 7), [runs(0, 2), runs(40_000, 2)]);
    }

    #[test]
    fn a_read_says_what_it_reads_and_what_is_wanted_of_it() {
        let cut = rows(100, 10, 3, &[4..6, 0..1]);
        let lens = |read: &Read| (read.byte_len(), read.wanted_len(), read.span());
        assert_eq!(lens(&Read::Whole(3..7)), (4, 4, 3..7));
        assert_eq!(lens(&Read::Block(cut.clone())), (26, 9, 100..126));
        assert_eq!(lens(&Read::Runs(cut.clone()).shifted(50)), (9, 9, 150..176));
        let runs: Vec<_> = cut.iter().collect();
        assert_eq!(runs, [104..106, 100..101, 114..116, 110..111, 124..126, 120..121]);
        let pieces: Vec<_> = cut.pieces(2).map(|piece| (piece.start, piece.count)).collect();
        assert_eq!(pieces, [(100, 2), (120, 1)]);
        let json = serde_json::to_value(Read::Block(rows(1, 2, 3, &[0..1]))).unwrap();
        assert_eq!(json["block"]["runs"], serde_json::json!([{"start": 0, "end": 1}]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_wanted_of_the_reads_is_the_selection(
            shape in proptest::collection::vec(1..6_usize, 0..4),
            cuts in proptest::collection::vec(proptest::collection::vec((0..6_usize, 0..6_usize), 0..3), 4),
            longest in 1..40_u64,
        ) {
            let mut selection = Selection::all();
            for (dim, (extent, cuts)) in shape.iter().zip(&cuts).enumerate() {
                if !cuts.is_empty() {
                    let ranges = cuts.iter().map(|&(a, b)| a.min(b).min(*extent)..a.max(b).min(*extent));
                    selection = selection.with_ranges(dim, ranges.collect());
                }
            }
            let tensor: Vec<u8> = (0..=u8::MAX).take(shape.iter().product()).collect();
            let runs = selection.lower_shape(Dtype::U8, &shape).unwrap();
            let expected: Vec<u8> = runs.iter().flat_map(|run| tensor[run].to_vec()).collect();
            let mut found = Vec::new();
            let bytes = |range: Range<u64>| &tensor[in_memory(range.start)..in_memory(range.end)];
            for read in runs.reads(longest) {
                prop_assert!(read.wanted_len() > 0);
                match read {
                    Read::Whole(range) => found.extend_from_slice(bytes(range)),
                    Read::Runs(rows) => rows.iter().for_each(|run| found.extend_from_slice(bytes(run))),
                    Read::Block(rows) => {
                        let span = rows.span();
                        prop_assert!(span.end - span.start <= longest);
                        rows.take_from(bytes(span), |run| found.extend_from_slice(run));
                    }
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
