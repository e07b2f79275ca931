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
    #[error("range {range:?} of dimension {dim} cuts a byte of {dtype}")]
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
