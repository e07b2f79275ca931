//! Reads of ranges and of evenly spaced rows, and the runs taken of their bytes. Pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

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
    /// Number of rows.
    pub count: u64,
    /// What is taken of each row. Shared by the rows of one selection.
    pub row: Arc<Row>,
}

/// One of several evenly spaced rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Bytes from one row to the next.
    pub stride: u64,
    /// The runs taken of the row, relative to its first taken byte, in the order of the result; none
    /// empty.
    pub runs: Box<[Range<u64>]>,
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
    /// The number of bytes taken of all rows.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.row.byte_len().saturating_mul(self.count)
    }

    /// The range from the first byte taken to the last.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        let row_end = self.row.runs.iter().map(|run| run.end).max().unwrap_or(0);
        let last_row = self.row.stride.saturating_mul(self.count.saturating_sub(1));
        self.start..self.start.saturating_add(last_row).saturating_add(row_end)
    }

    /// The rows in pieces of at most this many, and at least one.
    pub fn pieces(&self, rows: u64) -> impl Iterator<Item = Self> + use<> {
        let mut rest = self.clone();
        iter::from_fn(move || {
            let piece = Self { count: rest.count.min(rows.max(1)), ..rest.clone() };
            rest.count = rest.count.saturating_sub(piece.count);
            rest.start = rest.start.saturating_add(rest.row.stride.saturating_mul(piece.count));
            (piece.count > 0).then_some(piece)
        })
    }

    /// The runs of all rows, in the order of the result.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        (0..self.count).flat_map(|row| {
            let start = self.start.saturating_add(self.row.stride.saturating_mul(row));
            let at = move |run: &Range<u64>| {
                start.saturating_add(run.start)..start.saturating_add(run.end)
            };
            self.row.runs.iter().map(at)
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
            for run in &*self.row.runs {
                let ends = [run.start, run.end].map(|end| in_memory(row_start.saturating_add(end)));
                let [start, end] = ends;
                take(block.get(start..end).expect("the block is as long as the span of the rows"));
            }
            row_start = row_start.saturating_add(self.row.stride);
        }
    }
}

impl Row {
    /// The number of bytes taken of the row.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.runs.iter().map(len).fold(0, u64::saturating_add)
    }

    /// The mean gap between two runs, in bytes.
    pub(crate) fn gap(&self) -> u64 {
        let gaps = self.stride.saturating_sub(self.byte_len());
        gaps.checked_div(self.runs.len() as u64).unwrap_or(0)
    }
}

pub(crate) fn len(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// A position in memory; the largest `usize` if it does not fit.
pub(crate) fn in_memory(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
