//! The bytes of a selection as runs, counted without being listed. Pure.
//!
//! Arithmetic is unchecked here: `Selection` makes runs only from ranges within a shape whose bits
//! fit a `usize`, and the selected bits fit one too; every sum and product below is at most one of
//! the two numbers. Differences that may be negative are computed in `i128`. Debug builds check all
//! of it, and a test compares with listing every element.
#![deny(clippy::indexing_slicing)]

use std::ops::Range;
use std::sync::Arc;

use crate::dimension::{Dimension, folded};
use crate::read::Row;

/// The bytes that a selection takes, as runs relative to the start of the tensor.
///
/// Runs are in the order of the result, row-major: copied one after the other they are the selected
/// part. Adjacent runs are merged. They are computed while iterating, so memory grows with the
/// ranges of the selection, not with the runs: a cut of the innermost dimension has one run per
/// row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteRuns {
    shape: Box<[usize]>,
    byte_len: usize,
    num_runs: usize,
    span: Range<usize>,
    /// Bits of one element; all that follows is in elements.
    bits: usize,
    /// The dimensions outside the runs, with complete ones folded into those around them.
    outer: Vec<Dimension>,
    /// The dimension of which runs are ranges; inner ones are part of its stride.
    inner: Dimension,
    /// The runs of each index of the last outer dimension.
    row: Arc<Row>,
}

impl ByteRuns {
    /// No bytes, of a selection of this shape.
    pub(crate) fn empty(shape: Box<[usize]>) -> Self {
        Self::new(shape, 8, Vec::new(), Dimension { ranges: Vec::new(), stride: 1 })
    }

    /// The runs of ranges within a tensor; its bits and those of the selection must fit a `usize`.
    pub(crate) fn new(
        shape: Box<[usize]>,
        bits: usize,
        outer: Vec<Dimension>,
        inner: Dimension,
    ) -> Self {
        let outer = folded(outer);
        let num_rows: usize = outer.iter().map(Dimension::len).product();
        let byte_len = num_rows * inner.len() * inner.stride * bits / 8;
        let num_merges = num_merges(num_rows, &outer, &inner);
        let num_runs = num_rows * inner.ranges.len() - num_merges;
        let span = span(&outer, &inner, bits);
        let stride = outer.last().map_or(0, |rows| (rows.stride * bits / 8) as u64);
        let row = Arc::new(Row { stride, runs: inner.runs(bits).collect() });
        Self { shape, byte_len, num_runs, span, bits, outer, inner, row }
    }

    /// The extents of the selected part.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of bytes of the selected part, with repeated ranges counted each time.
    #[must_use]
    pub const fn byte_len(&self) -> usize {
        self.byte_len
    }

    /// The number of runs that [`iter`](Self::iter) gives.
    #[must_use]
    pub const fn num_runs(&self) -> usize {
        self.num_runs
    }

    /// The smallest range of bytes that holds all runs; `0..0` if there are none.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The runs, none of them empty, in the order of the result.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
        Runs::new(self)
    }

    /// The dimensions outside the runs, the one of which runs are ranges, and the bits of an
    /// element.
    pub(crate) fn parts(&self) -> (&[Dimension], &Dimension, usize) {
        (&self.outer, &self.inner, self.bits)
    }

    /// The runs of each row, which is one index of the last dimension outside the runs.
    pub(crate) fn row(&self) -> &Arc<Row> {
        &self.row
    }

    /// The first range of the innermost cut dimension with a run that does not begin and end on a
    /// byte.
    pub(crate) fn range_that_cuts_a_byte(&self) -> Option<&Range<usize>> {
        let on_byte = |element: usize| element * self.bits % 8 == 0;
        let first_row: usize = self.outer.iter().map(|dim| dim.first() * dim.stride).sum();
        let cut = self.inner.ranges.iter().find(|range| {
            [range.start, range.end].iter().any(|end| !on_byte(first_row + end * self.inner.stride))
        });
        // Other rows begin whole bytes away from the first, or split bytes too.
        cut.or_else(|| {
            let whole_bytes_away = self.outer.iter().all(|dim| {
                let steps = dim.ranges.iter().any(|range| range.len() > 1);
                let jumps = dim.ranges.iter().map(|range| range.start.abs_diff(dim.first()));
                (!steps || on_byte(dim.stride)) && jumps.map(|jump| jump * dim.stride).all(on_byte)
            });
            if whole_bytes_away { None } else { self.inner.ranges.first() }
        })
    }
}

/// The smallest range of bytes that holds all runs.
fn span(outer: &[Dimension], inner: &Dimension, bits: usize) -> Range<usize> {
    let (mut start, mut end) = (0, 0);
    for dim in outer {
        let Some(hull) = dim.hull() else { return 0..0 };
        start += hull.start * dim.stride;
        end += (hull.end - 1) * dim.stride;
    }
    let Some(hull) = inner.hull() else { return 0..0 };
    start += hull.start * inner.stride;
    end += hull.end * inner.stride;
    start * bits / 8..end * bits / 8
}

/// How many rows end with a run that touches the first run of the next row.
///
/// From one row to the next, one outer dimension takes a step, and the dimensions further in go
/// back from their last index to their first. All steps within a range have one distance, and so
/// has each jump to the next range; so distances are counted, not rows.
fn num_merges(num_rows: usize, outer: &[Dimension], inner: &Dimension) -> usize {
    let signed = |value: usize| i128::try_from(value).expect("a usize has at most 64 bits");
    let last_end = inner.ranges.last().map_or(0, |range| range.end);
    let touching = (signed(last_end) - signed(inner.first())) * signed(inner.stride);
    let mut merges = 0;
    let mut rows_per_index = 1;
    let mut way_back = 0;
    for dim in outer.iter().rev() {
        let stride = signed(dim.stride);
        let mut steps = 0;
        if stride + way_back == touching {
            steps += dim.ranges.iter().map(|range| range.len() - 1).sum::<usize>();
        }
        for (before, after) in dim.ranges.iter().zip(dim.ranges.iter().skip(1)) {
            let jump = signed(after.start) - signed(before.end - 1);
            steps += usize::from(jump * stride + way_back == touching);
        }
        rows_per_index *= dim.len();
        merges += num_rows.checked_div(rows_per_index).unwrap_or(0) * steps;
        way_back += (signed(dim.first()) - signed(dim.last())) * stride;
    }
    merges
}

/// Walks the rows like an odometer.
#[derive(Clone)]
struct Runs<'a> {
    runs: &'a ByteRuns,
    /// One position for each outer dimension.
    row: Vec<Place>,
    /// The first element of the row.
    row_start: usize,
    /// The next range of the inner dimension.
    next_range: usize,
    /// A run already computed, to find the end of the one before.
    pending: Option<Range<usize>>,
    remaining: usize,
}

/// The position in an outer dimension: which range, and which index.
#[derive(Clone, Copy)]
struct Place {
    range: usize,
    index: usize,
}

impl<'a> Runs<'a> {
    fn new(runs: &'a ByteRuns) -> Self {
        let row = runs.outer.iter().map(|dim| Place { range: 0, index: dim.first() }).collect();
        let row_start = runs.outer.iter().map(|dim| dim.first() * dim.stride).sum();
        Self { runs, row, row_start, next_range: 0, pending: None, remaining: runs.num_runs }
    }

    /// The next run in elements, not yet merged with adjacent ones.
    fn next_part(&mut self) -> Option<Range<usize>> {
        let inner = &self.runs.inner;
        if self.next_range == inner.ranges.len() {
            if !self.next_row() {
                return None;
            }
            self.next_range = 0;
        }
        let range = inner.ranges.get(self.next_range)?;
        self.next_range += 1;
        Some(self.row_start + range.start * inner.stride..self.row_start + range.end * inner.stride)
    }

    /// Moves to the next row; false after the last.
    fn next_row(&mut self) -> bool {
        for (place, dim) in self.row.iter_mut().zip(&self.runs.outer).rev() {
            let before = place.index;
            let moved = place.advance(dim);
            self.row_start = self.row_start - before * dim.stride + place.index * dim.stride;
            if moved {
                return true;
            }
        }
        false
    }
}

impl Place {
    /// Moves to the next index; after the last, returns to the first and gives false.
    fn advance(&mut self, dim: &Dimension) -> bool {
        if dim.ranges.get(self.range).is_some_and(|range| self.index + 1 < range.end) {
            self.index += 1;
            return true;
        }
        self.range += 1;
        if let Some(range) = dim.ranges.get(self.range) {
            self.index = range.start;
            return true;
        }
        *self = Self { range: 0, index: dim.first() };
        false
    }
}

impl Iterator for Runs<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let mut run = self.pending.take().or_else(|| {
            // After the last row the positions are at the first again.
            if self.remaining == 0 { None } else { self.next_part() }
        })?;
        while let Some(part) = self.next_part() {
            if part.start != run.end {
                self.pending = Some(part);
                break;
            }
            run.end = part.end;
        }
        self.remaining = self.remaining.saturating_sub(1);
        Some(run.start * self.runs.bits / 8..run.end * self.runs.bits / 8)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for Runs<'_> {}
