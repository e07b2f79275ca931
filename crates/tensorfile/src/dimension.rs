//! What a selection takes of one dimension of a tensor. Pure.
//!
//! Arithmetic is unchecked here, as in `byte_runs`: no range is empty or ends past its dimension. So
//! an index times the stride is at most the number of elements, and its bits fit a `usize`.
#![deny(clippy::indexing_slicing)]

use std::ops::Range;

/// The ranges taken of one dimension: none empty, none adjacent to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub(crate) ranges: Vec<Range<usize>>,
    /// Elements from one index of this dimension to the next.
    pub(crate) stride: usize,
}

impl Dimension {
    /// The number of indices taken.
    pub(crate) fn len(&self) -> usize {
        self.ranges.iter().map(Range::len).sum()
    }

    /// The first index taken.
    pub(crate) fn first(&self) -> usize {
        self.ranges.first().map_or(0, |range| range.start)
    }

    pub(crate) fn last(&self) -> usize {
        self.ranges.last().map_or(0, |range| range.end - 1)
    }

    /// The smallest range that holds all ranges.
    pub(crate) fn hull(&self) -> Option<Range<usize>> {
        let start = self.ranges.iter().map(|range| range.start).min()?;
        let end = self.ranges.iter().map(|range| range.end).max()?;
        Some(start..end)
    }

    /// The ranges as bytes, counted from the first that is taken of any.
    ///
    /// They begin and end on a byte, also of a packed dtype: `Selection::lower` checks that.
    pub(crate) fn runs(&self, bits: usize) -> impl Iterator<Item = Range<u64>> {
        let first = self.ranges.iter().map(|range| range.start).min().unwrap_or(0);
        let at = move |index: usize| ((index - first) * self.stride * bits / 8) as u64;
        self.ranges.iter().map(move |range| at(range.start)..at(range.end))
    }
}

/// These dimensions, with each complete one folded into the one around it.
pub(crate) fn folded(outer: Vec<Dimension>) -> Vec<Dimension> {
    let mut folded: Vec<Dimension> = Vec::new();
    for dim in outer {
        let whole = match &dim.ranges[..] {
            [range] if range.start == 0 => Some(range.end),
            _ => None,
        };
        match (folded.last_mut(), whole) {
            (Some(around), Some(len)) if around.stride == len * dim.stride => {
                for range in &mut around.ranges {
                    *range = range.start * len..range.end * len;
                }
                around.stride = dim.stride;
            }
            _ => folded.push(dim),
        }
    }
    folded
}
