//! The runs of a selection as evenly spaced rows: a plan of reads without a list of every run.
#![deny(clippy::indexing_slicing)]

use std::ops::Range;

use crate::byte_runs::{ByteRuns, Dimension};

/// Rows at even distances, each with the same runs of bytes taken from it.
///
/// Cutting the columns of a matrix gives one of these however many rows it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// What is taken of the first row, relative to the start of the tensor, in the order of the
    /// result; none empty.
    pub runs: Vec<Range<usize>>,
    /// Bytes from one row to the next.
    pub stride: usize,
    /// Number of rows.
    pub count: usize,
}

impl Rows {
    /// Bytes taken of each row.
    #[must_use]
    pub fn row_len(&self) -> usize {
        self.runs.iter().map(Range::len).sum()
    }
}

impl ByteRuns {
    /// The runs grouped to evenly spaced rows, in the order of the result.
    ///
    /// There is one group for each range of the innermost dimension outside of the runs, and for
    /// each index of those further out.
    pub fn rows(&self) -> impl Iterator<Item = Rows> {
        let (outer, inner, bits) = self.parts();
        let mut outer = folded(outer);
        let rows = outer.pop().unwrap_or_else(Dimension::one);
        let first: usize = outer.iter().chain([&rows]).map(|dim| dim.first() * dim.stride).sum();
        let groups: usize =
            if inner.ranges.is_empty() { 0 } else { outer.iter().map(Dimension::len).product() };
        let in_group = rows.ranges.len();
        (0..groups * in_group).filter_map(move |i| {
            let range = rows.ranges.get(i % in_group)?;
            // Single ends may lie within a byte of a packed dtype; counted from the first element
            // taken they do not, which `lower` has checked.
            let start = nth_start(&outer, i / in_group) + range.start * rows.stride;
            let at = |index: usize| (start + index * inner.stride) * bits / 8;
            debug_assert!((start.abs_diff(first) * bits) % 8 == 0, "rows are whole bytes apart");
            Some(Rows {
                runs: inner.ranges.iter().map(|run| at(run.start)..at(run.end)).collect(),
                stride: rows.stride * bits / 8,
                count: range.len(),
            })
        })
    }
}

/// The outer dimensions, with each that is taken whole folded into the one around it.
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

/// The first element of the group with this number, counted as an odometer does.
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

    use super::Rows;
    use crate::{Dtype, Selection};

    /// Every run of the rows, with neighbours that touch merged, as `ByteRuns::iter` does.
    fn merged(rows: impl Iterator<Item = Rows>) -> Vec<Range<usize>> {
        let mut all: Vec<Range<usize>> = Vec::new();
        for Rows { runs, stride, count } in rows {
            for row in 0..count {
                for run in &runs {
                    let run = run.start + row * stride..run.end + row * stride;
                    match all.last_mut() {
                        Some(last) if last.end == run.start => last.end = run.end,
                        _ => all.push(run),
                    }
                }
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
        let rows: Vec<_> = runs.rows().collect();
        assert_eq!(
            rows,
            [Rows { runs: std::iter::once(32..48).collect(), stride: 64, count: 16_000_000 }]
        );
    }

    #[test]
    fn ranges_of_columns_belong_to_one_row() {
        let runs = Selection::all()
            .with_ranges(1, vec![0..2, 6..8])
            .lower_shape(Dtype::U8, &[3, 8])
            .unwrap();
        let rows: Vec<_> = runs.rows().collect();
        assert_eq!(rows, [Rows { runs: vec![0..2, 6..8], stride: 8, count: 3 }]);
    }

    #[test]
    fn a_cut_of_rows_is_one_run() {
        let runs = Selection::all().with_range(0, 1..3).lower_shape(Dtype::F16, &[4, 8]).unwrap();
        let rows: Vec<_> = runs.rows().collect();
        assert_eq!(rows, [Rows { runs: std::iter::once(16..48).collect(), stride: 0, count: 1 }]);
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
