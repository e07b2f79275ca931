//! Groups the runs of a selection into evenly spaced rows, without a list of every run.
//!
//! Arithmetic is unchecked here, for the reason given in `byte_runs`.
#![deny(clippy::indexing_slicing)]

use std::ops::Range;
use std::sync::Arc;

use crate::byte_runs::{ByteRuns, Dimension};
use crate::reads::Rows;

impl ByteRuns {
    /// The runs grouped into evenly spaced rows, in the order of the result.
    ///
    /// There is one group for each range of the innermost dimension outside the runs, for each
    /// index of those further out.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Rows> {
        let (outer, inner, bits) = self.parts();
        let mut outer = folded(outer);
        let rows = outer.pop().unwrap_or_else(Dimension::one);
        let groups: usize =
            if inner.ranges.is_empty() { 0 } else { outer.iter().map(Dimension::len).product() };
        let in_group = rows.ranges.len();
        // Runs begin and end on a byte, for packed dtypes too: `lower` has checked it.
        let bytes = move |elements: usize| (elements * bits / 8) as u64;
        let first = inner.ranges.iter().map(|run| run.start).min().unwrap_or(0);
        let from_first = |index: usize| bytes((index - first) * inner.stride);
        let from_first = |run: &Range<usize>| from_first(run.start)..from_first(run.end);
        let runs: Arc<[_]> = inner.ranges.iter().map(from_first).collect();
        (0..groups * in_group).filter_map(move |i| {
            let range = rows.ranges.get(i % in_group)?;
            let row_start = nth_start(&outer, i / in_group) + range.start * rows.stride;
            Some(Rows {
                start: bytes(row_start + first * inner.stride),
                stride: bytes(rows.stride),
                count: range.len() as u64,
                runs: Arc::clone(&runs),
            })
        })
    }
}

/// The outer dimensions, with each complete one folded into the one around it.
fn folded(outer: &[Dimension]) -> Vec<Dimension> {
    let mut folded: Vec<Dimension> = Vec::new();
    for dim in outer {
        let whole = match dim.ranges.first() {
            Some(range) if dim.ranges.len() == 1 && range.start == 0 => Some(range.end),
            _ => None,
        };
        match (folded.last_mut(), whole) {
            (Some(around), Some(len)) if around.stride == len * dim.stride => {
                for range in &mut around.ranges {
                    *range = range.start * len..range.end * len;
                }
                around.stride = dim.stride;
            }
            _ => folded.push(dim.clone()),
        }
    }
    folded
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

    use proptest::prelude::*;

    use crate::reads::Rows;
    use crate::{Dtype, Selection};

    fn rows(start: u64, stride: u64, count: u64, runs: &[Range<u64>]) -> Rows {
        Rows { start, stride, count, runs: runs.into() }
    }

    /// Every run of the rows, with adjacent ones merged, as `ByteRuns::iter` does.
    fn merged(rows: impl Iterator<Item = Rows>) -> Vec<Range<usize>> {
        let mut all: Vec<Range<usize>> = Vec::new();
        for run in rows.flat_map(|rows| rows.iter().collect::<Vec<_>>()) {
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
        assert!(runs.rows().eq([rows(32, 64, 16_000_000, &[Range { start: 0, end: 16 }])]));
    }

    #[test]
    fn ranges_of_columns_belong_to_one_row() {
        let runs = Selection::all()
            .with_ranges(1, vec![0..2, 6..8])
            .lower_shape(Dtype::U8, &[3, 8])
            .unwrap();
        assert!(runs.rows().eq([rows(0, 8, 3, &[0..2, 6..8])]));
    }

    #[test]
    fn a_cut_of_rows_is_one_run() {
        let runs = Selection::all().with_range(0, 1..3).lower_shape(Dtype::F16, &[4, 8]).unwrap();
        assert!(runs.rows().eq([rows(16, 0, 1, &[Range { start: 0, end: 32 }])]));
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
            prop_assert_eq!(merged(runs.rows()), runs.iter().collect::<Vec<_>>());
        }
    }
}
