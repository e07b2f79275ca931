//! `Selection`: ranges of each dimension of a tensor, lowered to runs of bytes. Pure.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::ops::Range;
use std::slice;

use crate::byte_runs::ByteRuns;
use crate::dimension::Dimension;
use crate::selection_fault::SelectionFault;
use crate::{Dtype, ErrorKind, Result, TensorInfo, shape};

/// A part of a tensor: each dimension whole, or an ordered list of its ranges.
///
/// Ranges may repeat and come in any order; along their dimension the result is the concatenation
/// of the parts, as in NumPy `np.concatenate([x[a:b], x[c:d]], axis=dim)`. Empty ranges and empty
/// lists are legal and select nothing. A selection is independent of a tensor; it is checked when
/// it is applied to one.
///
/// ```
/// use tensorfile::{Dtype, Header, HeaderOptions, Selection, Writer};
///
/// let mut writer = Writer::new();
/// writer.add("w", Dtype::U8, &[2, 4], b"abcdefgh")?;
/// let header = Header::from_bytes(&writer.to_bytes()?, &HeaderOptions::default())?;
///
/// let columns = Selection::all().with_range(1, 1..3);
/// let runs = columns.lower(header.get("w").expect("it was written"))?;
/// assert_eq!(runs.shape(), [2, 2]);
/// assert_eq!(runs.iter().collect::<Vec<_>>(), [1..3, 5..7]);
/// # Ok::<(), tensorfile::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// The rank that the tensor must have, if the selection fixes it.
    rank: Option<usize>,
    /// Sorted by dimension; others are taken whole. A model has one selection per tensor, most of
    /// which cut one dimension.
    ranges: Vec<(usize, Vec<Range<usize>>)>,
}

impl Selection {
    /// All of a tensor of any rank.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// One range for every dimension, or `None` for all of it; the tensor must have this rank.
    #[must_use]
    pub fn from_ranges(ranges: &[Option<Range<usize>>]) -> Self {
        let given = ranges.iter().enumerate();
        let by_dim = given.filter_map(|(dim, range)| Some((dim, vec![range.clone()?])));
        Self { rank: Some(ranges.len()), ranges: by_dim.collect() }
    }

    /// The same selection with one range of this dimension, counted from 0 for the outermost.
    ///
    /// It replaces earlier ranges of the dimension.
    #[must_use]
    pub fn with_range(self, dim: usize, range: Range<usize>) -> Self {
        self.with_ranges(dim, vec![range])
    }

    /// The same selection with a list of ranges of this dimension, in the order of the result.
    ///
    /// It replaces earlier ranges of the dimension.
    #[must_use]
    pub fn with_ranges(mut self, dim: usize, ranges: Vec<Range<usize>>) -> Self {
        match self.position(dim) {
            Ok(at) => {
                if let Some((_, old)) = self.ranges.get_mut(at) {
                    *old = ranges;
                }
            }
            Err(at) => {
                self.ranges.reserve_exact(1);
                self.ranges.insert(at, (dim, ranges));
            }
        }
        self
    }

    /// Whether the selection takes all of any tensor.
    ///
    /// False if there is any range, even one that spans its dimension, whose extent is not known
    /// here.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The runs of selected bytes, relative to the start of the tensor.
    ///
    /// Time and memory grow with the rank and the ranges, not with the runs.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Selection`]:
    ///
    /// - [`SelectionFault::Rank`] if the tensor has another rank, or lacks the dimension; a scalar
    ///   has none.
    /// - [`SelectionFault::Range`] if a range is reversed or ends past its dimension.
    /// - [`SelectionFault::PartialByte`] if a run of a packed dtype begins or ends within a byte.
    /// - [`SelectionFault::Overflow`] if repeated ranges exceed the address space.
    pub fn lower(&self, info: &TensorInfo) -> Result<ByteRuns> {
        self.lower_shape(info.dtype(), info.shape())
            .map_err(|fault| ErrorKind::from(fault).in_tensor(info.name()))
    }

    /// The runs of selected bytes of a tensor of this dtype and shape.
    pub(crate) fn lower_shape(
        &self,
        dtype: Dtype,
        shape: &[usize],
    ) -> Result<ByteRuns, SelectionFault> {
        let target = Target { dtype, shape };
        target.check_rank(self)?;
        let mut lists = Vec::with_capacity(shape.len());
        let mut selected = Vec::with_capacity(shape.len());
        for (dim, len) in shape.iter().enumerate() {
            let list = match self.ranges_of(dim) {
                None => join_touching(slice::from_ref(&(0..*len))),
                Some(ranges) => {
                    check_ranges(dim, *len, ranges)?;
                    join_touching(ranges)
                }
            };
            let total = list.iter().map(Range::len).try_fold(0, usize::checked_add);
            selected.push(total.ok_or(SelectionFault::Overflow)?);
            lists.push(list);
        }
        if target.num_bits(&selected)? == 0 {
            return Ok(ByteRuns::empty(selected.into()));
        }
        // No dimension is empty, so strides are factors of this number, which fits, as does its
        // number of bits.
        target.num_bits(shape)?;
        let num_elements = shape::num_elements(shape).ok_or(SelectionFault::Overflow)?;
        let (outer, inner) = strided(lists, shape, num_elements);
        let dim = outer.len();
        let runs = ByteRuns::new(selected.into(), target.bits(), outer, inner);
        match runs.range_that_cuts_a_byte() {
            None => Ok(runs),
            Some(range) => Err(SelectionFault::PartialByte { dtype, dim, range: range.clone() }),
        }
    }

    /// The position of a dimension's ranges in the list, or where to insert them.
    fn position(&self, dim: usize) -> Result<usize, usize> {
        self.ranges.binary_search_by_key(&dim, |(dim, _)| *dim)
    }

    /// The ranges of a dimension that is not taken whole.
    fn ranges_of(&self, dim: usize) -> Option<&[Range<usize>]> {
        let (_, ranges) = self.ranges.get(self.position(dim).ok()?)?;
        Some(ranges)
    }
}

/// The ranges without empty ones, with adjacent ones merged.
fn join_touching(ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range.clone()),
        }
    }
    joined
}

/// The outer dimensions, and the one of which runs are ranges.
///
/// The latter is the last dimension that is not whole; whole ones after it are part of its stride.
/// All extents must be positive, and their product is the number of elements.
fn strided(
    lists: Vec<Vec<Range<usize>>>,
    shape: &[usize],
    num_elements: usize,
) -> (Vec<Dimension>, Dimension) {
    let is_cut = |(list, len): (&Vec<Range<usize>>, &usize)| !matches!(&list[..], [all] if *all == (0..*len));
    let inner_dim = lists.iter().zip(shape).rposition(is_cut).unwrap_or(0);
    let num_dims = inner_dim.saturating_add(1);
    let mut stride = num_elements;
    let mut dims = Vec::with_capacity(num_dims);
    for (ranges, len) in lists.into_iter().zip(shape).take(num_dims) {
        stride = stride.checked_div(*len).unwrap_or_default();
        dims.push(Dimension { ranges, stride });
    }
    // A scalar has no dimension; it is one run of its one element.
    let inner = dims
        .pop()
        .unwrap_or_else(|| Dimension { ranges: vec![Range { start: 0, end: 1 }], stride: 1 });
    (dims, inner)
}

/// The tensor to select from.
struct Target<'a> {
    dtype: Dtype,
    shape: &'a [usize],
}

impl Target<'_> {
    const fn bits(&self) -> usize {
        self.dtype.bits() as usize
    }

    /// The bits of a part of this shape.
    fn num_bits(&self, shape: &[usize]) -> Result<usize, SelectionFault> {
        shape::num_bits(self.dtype, shape).ok_or(SelectionFault::Overflow)
    }

    fn check_rank(&self, selection: &Selection) -> Result<(), SelectionFault> {
        let expected = self.shape.len();
        let named = selection.ranges.last().map_or(0, |(dim, _)| dim.saturating_add(1));
        if named <= expected && selection.rank.is_none_or(|asked| asked == expected) {
            return Ok(());
        }
        Err(SelectionFault::Rank { expected, found: selection.rank.unwrap_or(0).max(named) })
    }
}

fn check_ranges(dim: usize, len: usize, ranges: &[Range<usize>]) -> Result<(), SelectionFault> {
    match ranges.iter().find(|range| range.start > range.end || range.end > len) {
        None => Ok(()),
        Some(range) => Err(SelectionFault::Range { dim, range: range.clone(), len }),
    }
}

#[cfg(test)]
mod tests;
