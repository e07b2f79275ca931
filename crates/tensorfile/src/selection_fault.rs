//! Why a selection does not fit a tensor.

use std::ops::Range;

use crate::dtype::Dtype;

/// Why a selection does not fit a tensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionFault {
    /// Its number of dimensions differs from the tensor's, or it names one that the tensor lacks.
    #[error("selection of {found} dimensions, the tensor has {expected}")]
    Rank {
        /// The number of dimensions of the tensor.
        expected: usize,
        /// The number of dimensions of the selection, or the least that it needs.
        found: usize,
    },
    /// A range is reversed or ends past its dimension.
    #[error("range {range:?} of dimension {dim}, which has {len} elements")]
    Range {
        /// The dimension, counted from 0 for the outermost.
        dim: usize,
        /// The requested range.
        range: Range<usize>,
        /// The extent of the dimension.
        len: usize,
    },
    /// A part of a packed dtype starts or ends within a byte.
    #[error(
        "range {range:?} of dimension {dim} cuts a byte of {dtype}: {} elements fill whole bytes",
        elements_of_whole_bytes(*dtype)
    )]
    PartialByte {
        /// The type of the elements.
        dtype: Dtype,
        /// The dimension, counted from 0 for the outermost.
        dim: usize,
        /// The requested range.
        range: Range<usize>,
    },
    /// Repeated ranges make it larger than the address space.
    #[error("the selection overflows the address range")]
    Overflow,
}

/// The least number of elements that fills whole bytes.
fn elements_of_whole_bytes(dtype: Dtype) -> usize {
    (1..8).find(|count| dtype.byte_len(*count).is_some()).unwrap_or(8)
}

#[cfg(test)]
mod tests {
    use super::{Dtype, SelectionFault};

    #[test]
    fn a_cut_byte_says_how_many_elements_fill_whole_ones() {
        for (dtype, count) in [(Dtype::F4, 2), (Dtype::F6E2M3, 4), (Dtype::U8, 1)] {
            let fault = SelectionFault::PartialByte { dtype, dim: 1, range: 1..3 };
            let says =
                format!("range 1..3 of dimension 1 cuts a byte of {dtype}: {count} elements");
            assert_eq!(fault.to_string(), format!("{says} fill whole bytes"));
        }
    }
}
