//! A portion of a tensor along one dimension: its selection, and its bytes.

use std::ops::Range;

use tensorfile::Selection;

use super::siblings::TensorShape;

/// Bytes of a tensor of which only so much is counted along some dimensions.
pub(super) fn byte_len(tensor: &TensorShape<'_>, parts: &[Option<(usize, usize)>]) -> u64 {
    let counted = |dim: usize, len: usize| {
        let part = parts.iter().flatten().find(|(other, _)| *other == dim);
        part.map_or(len, |(_, part)| *part)
    };
    let extents = tensor.shape.iter().enumerate();
    let num_elements =
        extents.fold(1, |n: u64, (dim, len)| n.saturating_mul(counted(dim, *len) as u64));
    num_elements.saturating_mul(u64::from(tensor.dtype.bits())) / 8
}

/// The selection with these ranges of a dimension, unless they are all of it.
pub(super) fn restrict(
    selection: Selection,
    shape: &[usize],
    dim: usize,
    mut ranges: Vec<Range<usize>>,
) -> Selection {
    // Adjacent ranges become one.
    ranges.dedup_by(|next, last| {
        let touches = last.end == next.start;
        if touches {
            last.end = next.end;
        }
        touches
    });
    match &ranges[..] {
        [all] if shape.get(dim).is_some_and(|len| *all == (0..*len)) => selection,
        _ => selection.with_ranges(dim, ranges),
    }
}
