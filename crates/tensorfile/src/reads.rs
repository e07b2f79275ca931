//! The reads of a selection: its rows, read whole or run by run. Pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::ops::Range;
use std::sync::Arc;

use crate::byte_runs::ByteRuns;
use crate::read::{Read, Row, Rows, len};
use crate::rows::Groups;

/// The longest gap between two runs of one read. A separate read costs about as much as copying
/// this many bytes, and pages of cache and disk are 4 KiB anyway.
const MAX_GAP: u64 = 16 << 10;

impl ByteRuns {
    /// The reads of the runs, in the order of the result, relative to the start of the tensor.
    ///
    /// Small gaps between runs are read too, up to 16 KiB per run. A block has at most `longest`
    /// bytes, and of the rows of a [`Read::Runs`] at most that many are taken; a
    /// [whole](Read::Whole) run has no limit.
    pub fn reads(&self, longest: u64) -> impl Iterator<Item = Read> {
        Reads::new(self, longest)
    }
}

/// The reads of a selection, one after the other.
struct Reads<'a> {
    /// The only run, if there is one.
    whole: Option<Range<u64>>,
    groups: Groups<'a>,
    row: &'a Arc<Row>,
    /// The start and the number of the rows of a group that are left.
    rest: (u64, u64),
    /// The start of a row that is read by itself, and its runs that are left.
    single: (u64, &'a [Range<u64>]),
    longest: u64,
    /// Whether rows are read with the gaps between their runs.
    is_block: bool,
    rows_at_a_time: u64,
}

impl<'a> Reads<'a> {
    fn new(runs: &'a ByteRuns, longest: u64) -> Self {
        let Range { start, end } = runs.span();
        let whole = (runs.num_runs() == 1).then_some(start as u64..end as u64);
        let groups = if whole.is_some() { Groups::default() } else { Groups::of(runs) };
        let row = runs.row();
        let is_block = row.gap() <= MAX_GAP;
        let bytes_per_row = if is_block { row.stride } else { row.byte_len() };
        let rows_at_a_time = longest.checked_div(bytes_per_row).unwrap_or(longest).max(1);
        let (rest, single) = ((0, 0), (0, &[][..]));
        Self { whole, groups, row, rest, single, longest, is_block, rows_at_a_time }
    }

    /// The next read of a single row: of one run, or of several short ones near each other.
    fn next_of_single(&mut self) -> Option<Read> {
        let (row_start, runs) = self.single;
        let first = runs.first()?.start;
        let is_near = |pair: &&[Range<u64>]| match pair {
            [a, b] => are_near(a, b) && len(&(first..b.end)) <= self.longest,
            _ => false,
        };
        let num_near = runs.windows(2).take_while(is_near).count();
        let (together, others) = runs.split_at_checked(num_near.saturating_add(1))?;
        self.single = (row_start, others);
        let start = row_start.saturating_add(first);
        Some(match together {
            [run] => Read::Whole(start..start.saturating_add(len(run))),
            _ => {
                let from_first = |run: &Range<u64>| {
                    run.start.saturating_sub(first)..run.end.saturating_sub(first)
                };
                let row = Row { stride: 0, runs: together.iter().map(from_first).collect() };
                Read::Block(Rows { start, count: 1, row: Arc::new(row) })
            }
        })
    }
}

impl Iterator for Reads<'_> {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        if let Some(range) = self.whole.take() {
            return Some(Read::Whole(range));
        }
        loop {
            if let Some(read) = self.next_of_single() {
                return Some(read);
            }
            if self.rest.1 == 0 {
                self.rest = self.groups.next()?;
            }
            let (start, left) = self.rest;
            let count = left.min(self.rows_at_a_time);
            let bytes = self.row.stride.saturating_mul(count);
            self.rest = (start.saturating_add(bytes), left.saturating_sub(count));
            if count == 1 {
                self.single = (start, &self.row.runs);
                continue;
            }
            let rows = Rows { start, count, row: Arc::clone(self.row) };
            return Some(if self.is_block { Read::Block(rows) } else { Read::Runs(rows) });
        }
    }
}

/// Whether two runs and the gap between them are so short that one read is better.
fn are_near(run: &Range<u64>, next: &Range<u64>) -> bool {
    let from_end = next.end.checked_sub(run.end).filter(|_| next.start >= run.end);
    len(run) <= MAX_GAP && from_end.is_some_and(|bytes| bytes <= MAX_GAP)
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "of small numbers")]
#[expect(clippy::single_range_in_vec_init, reason = "lists of one run are meant")]
mod tests {
    use std::ops::Range;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::{MAX_GAP, Read, Row, Rows};
    use crate::read::in_memory;
    use crate::{Dtype, Selection};

    /// The reads of a selection of an 8-bit tensor of this shape.
    fn reads(shape: &[usize], selection: &Selection, longest: u64) -> Vec<Read> {
        selection.lower_shape(Dtype::U8, shape).unwrap().reads(longest).collect()
    }

    fn rows(start: u64, stride: u64, count: u64, runs: &[Range<u64>]) -> Rows {
        Rows { start, count, row: Arc::new(Row { stride, runs: runs.into() }) }
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
        assert_eq!(json["block"]["row"]["runs"], serde_json::json!([{"start": 0, "end": 1}]));
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
