//! Groups the runs of a selection into evenly spaced rows, without a list of every run. Pure.
//!
//! Arithmetic is unchecked here, as in `byte_runs`: each group has at least one selected element, so
//! that their number fits a `usize`; and a position is one of an element, so that its bits fit one.
#![deny(clippy::indexing_slicing)]

use std::ops::Range;

use crate::byte_runs::ByteRuns;
use crate::dimension::Dimension;

/// The one index of a selection that has no dimension outside of its runs.
const ONE: &[Range<usize>] = &[Range { start: 0, end: 1 }];

/// Groups of evenly spaced rows, in the order of the result: the start of the first row and the
/// number of rows of each. The runs of a row are the same in all.
///
/// There is one group for each range of the innermost dimension outside the runs, for each index of
/// those further out.
#[derive(Default)]
pub(crate) struct Groups<'a> {
    /// The dimensions around that of the rows.
    outer: &'a [Dimension],
    /// The rows that are taken of each index of those, and the elements from one to the next.
    rows: &'a [Range<usize>],
    stride: usize,
    /// The first element that is taken of a row.
    first: usize,
    bits: usize,
    next: usize,
    count: usize,
}

impl<'a> Groups<'a> {
    pub(crate) fn of(runs: &'a ByteRuns) -> Self {
        let (outer, inner, bits) = runs.parts();
        let (rows, stride, outer) = match outer.split_last() {
            Some((rows, outer)) => (&rows.ranges[..], rows.stride, outer),
            None => (ONE, 0, outer),
        };
        let groups: usize = outer.iter().map(Dimension::len).product();
        let count = if inner.ranges.is_empty() { 0 } else { groups * rows.len() };
        let first = inner.ranges.iter().map(|run| run.start).min().unwrap_or(0) * inner.stride;
        Self { outer, rows, stride, first, bits, next: 0, count }
    }
}

impl Iterator for Groups<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        if self.next == self.count {
            return None;
        }
        let (index, number) = (self.next / self.rows.len(), self.next % self.rows.len());
        let rows = self.rows.get(number)?;
        self.next += 1;
        let row_start = nth_start(self.outer, index) + rows.start * self.stride;
        // Runs begin on a byte, for packed dtypes too: `lower` has checked it.
        let start = (row_start + self.first) * self.bits / 8;
        Some((start as u64, rows.len() as u64))
    }
}

/// The first element of the group with this number, with the last dimension counted fastest.
fn nth_start(outer: &[Dimension], mut group: usize) -> usize {
    let mut start = 0;
    for dim in outer.iter().rev() {
        let mut index = group.checked_rem(dim.len()).unwrap_or(0);
        group = group.checked_div(dim.len()).unwrap_or(0);
        for range in &dim.ranges {
            if index < range.len() {
                start += (range.start + index) * dim.stride;
                break;
            }
            index -= range.len();
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::Groups;
    use crate::byte_runs::ByteRuns;
    use crate::read::{Row, Rows};
    use crate::{Dtype, Selection};

    fn row(stride: u64, runs: &[Range<u64>]) -> Row {
        Row { stride, runs: runs.into() }
    }

    fn groups(runs: &ByteRuns) -> Vec<(u64, u64)> {
        Groups::of(runs).collect()
    }

    /// Every run of the rows, with adjacent ones merged, as `ByteRuns::iter` does.
    fn merged(runs: &ByteRuns) -> Vec<Range<usize>> {
        let mut all: Vec<Range<usize>> = Vec::new();
        let rows = |(start, count)| Rows { start, count, row: Arc::clone(runs.row()) };
        let runs = Groups::of(runs).flat_map(|group| rows(group).iter().collect::<Vec<_>>());
        for run in runs {
            let run = run.start.try_into().unwrap()..run.end.try_into().unwrap();
            match all.last_mut() {
                Some(last) if last.end == run.start => last.end = run.end,
                _ => all.push(run),
            }
        }
        all
    }

    #[test]
    fn a_cut_of_columns_is_one_group_whatever_the_rows() {
        let runs = Selection::all()
            .with_range(2, 8..12)
            .lower_shape(Dtype::F32, &[16, 1_000_000, 16])
            .unwrap();
        assert_eq!(groups(&runs), [(32, 16_000_000)]);
        assert_eq!(**runs.row(), row(64, &[Range { start: 0, end: 16 }]));
    }

    #[test]
    fn ranges_of_columns_belong_to_one_row() {
        let runs = Selection::all()
            .with_ranges(1, vec![0..2, 6..8])
            .lower_shape(Dtype::U8, &[3, 8])
            .unwrap();
        assert_eq!((groups(&runs), &**runs.row()), (vec![(0, 3)], &row(8, &[0..2, 6..8])));
    }

    #[test]
    fn a_cut_of_rows_is_one_run() {
        let runs = Selection::all().with_range(0, 1..3).lower_shape(Dtype::F16, &[4, 8]).unwrap();
        assert_eq!(groups(&runs), [(16, 1)]);
        assert_eq!(**runs.row(), row(0, &[Range { start: 0, end: 32 }]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn rows_hold_the_runs_in_their_order(
            shape in proptest::collection::vec(1..5_usize, 0..5),
            cuts in proptest::collection::vec(proptest::collection::vec((0..5_usize, 0..5_usize), 0..3), 5),
        ) {
            let mut selection = Selection::all();
            for (dim, (extent, cuts)) in shape.iter().zip(&cuts).enumerate() {
                if !cuts.is_empty() {
                    let ranges = cuts.iter().map(|&(a, b)| a.min(b).min(*extent)..a.max(b).min(*extent));
                    selection = selection.with_ranges(dim, ranges.collect());
                }
            }
            let runs = selection.lower_shape(Dtype::F16, &shape).unwrap();
            prop_assert_eq!(merged(&runs), runs.iter().collect::<Vec<_>>());
        }
    }
}
