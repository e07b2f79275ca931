//! The reads that bring a selection: ranges of bytes, and evenly spaced rows. Pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use crate::byte_runs::ByteRuns;

/// Bytes between two runs that are read along. A read of its own costs about as much as copying
/// this many bytes, and a page of the cache or the disk is 4 KiB in any case.
const MAX_GAP: u64 = 16 << 10;

/// Bytes that are read, and which of them are wanted.
///
/// Positions are those of a file, or relative to the start of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Read {
    /// One read of a range, all of which is wanted.
    Whole(Range<u64>),
    /// One read of rows and what lies between their runs, of which the runs are wanted.
    Block(Rows),
    /// A read for each run of the rows.
    Runs(Rows),
}

/// Rows at even distances, each with the same runs of bytes taken from it.
///
/// Cutting the columns of a matrix gives one of these however many rows it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rows {
    /// The position of the first byte that is wanted of the first row.
    pub start: u64,
    /// Bytes from one row to the next.
    pub stride: u64,
    /// Number of rows.
    pub count: u64,
    /// What is taken of each row, counted from its first byte that is wanted, in the order of the
    /// result; none empty. The rows of one selection share it.
    pub runs: Arc<[Range<u64>]>,
}

impl Read {
    /// Bytes that are read.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        match self {
            Self::Whole(range) => len(range),
            Self::Block(rows) => len(&rows.span()),
            Self::Runs(rows) => rows.byte_len(),
        }
    }

    /// Bytes that are wanted of those read.
    #[must_use]
    pub fn wanted_len(&self) -> u64 {
        match self {
            Self::Whole(range) => len(range),
            Self::Block(rows) | Self::Runs(rows) => rows.byte_len(),
        }
    }

    /// The bytes from the first that is wanted to the last.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        match self {
            Self::Whole(range) => range.clone(),
            Self::Block(rows) | Self::Runs(rows) => rows.span(),
        }
    }

    /// The same further on by this many bytes: in the file in which the tensor starts there.
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
    /// Bytes taken of each row.
    #[must_use]
    pub fn row_len(&self) -> u64 {
        self.runs.iter().map(len).fold(0, u64::saturating_add)
    }

    /// Bytes taken of all rows.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.row_len().saturating_mul(self.count)
    }

    /// The bytes from the first that is taken to the last.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        let row_end = self.runs.iter().map(|run| run.end).max().unwrap_or(0);
        let last_row = self.stride.saturating_mul(self.count.saturating_sub(1));
        self.start..self.start.saturating_add(last_row).saturating_add(row_end)
    }

    /// The rows in pieces of at most so many, and of one in any case.
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
    /// If `block` is shorter than the [`span`](Self::span) of the rows, whose bytes it is to hold.
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

    /// Bytes between two runs, on average.
    fn gap(&self) -> u64 {
        let gaps = self.stride.saturating_sub(self.row_len());
        gaps.checked_div(self.runs.len() as u64).unwrap_or(0)
    }

    /// The reads of these rows, as [`ByteRuns::reads`] has them.
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

    /// The reads of a single row: one for each run, or for short runs that are near each other.
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
    /// The reads that bring the runs, in the order of the result, relative to the start of the
    /// tensor.
    ///
    /// Bytes between runs are read along where they are few: up to 16 KiB a run. No block is longer
    /// than `longest` bytes, and no more are wanted of the rows of [`Read::Runs`]; a
    /// [whole](Read::Whole) run is as long as it is.
    pub fn reads(&self, longest: u64) -> impl Iterator<Item = Read> {
        let Range { start, end } = self.span();
        let only = (self.num_runs() == 1).then_some(Read::Whole(start as u64..end as u64));
        let num_groups = if only.is_some() { 0 } else { usize::MAX };
        let of_rows = self.rows().take(num_groups).flat_map(move |rows| rows.reads(longest));
        only.into_iter().chain(of_rows)
    }
}

/// Whether two runs are short, and what lies between them as well, so that one read is better.
fn are_near(run: &Range<u64>, next: &Range<u64>) -> bool {
    let from_end = next.end.checked_sub(run.end).filter(|_| next.start >= run.end);
    len(run) <= MAX_GAP && from_end.is_some_and(|bytes| bytes <= MAX_GAP)
}

fn len(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// A position in memory; where it is beyond any that memory can have, the last, which nobody has.
pub(crate) fn in_memory(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
