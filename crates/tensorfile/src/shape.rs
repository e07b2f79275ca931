//! How many elements, bits and bytes a shape has, where there is such a number.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use crate::Dtype;

/// The number of elements of this shape; 1 for a scalar.
///
/// As in the reference, no product may overflow on the way, not even one that a later 0 would undo.
pub(crate) fn num_elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1, |product: usize, len| product.checked_mul(*len))
}

/// The bits of a tensor of this dtype and shape.
pub(crate) fn num_bits(dtype: Dtype, shape: &[usize]) -> Option<usize> {
    num_elements(shape)?.checked_mul(dtype.bits() as usize)
}

/// The bytes of a tensor of this dtype and shape, or `None` also where they are not whole.
pub(crate) fn byte_len(dtype: Dtype, shape: &[usize]) -> Option<usize> {
    dtype.byte_len(num_elements(shape)?)
}

#[cfg(test)]
mod tests {
    use super::{byte_len, num_bits, num_elements};
    use crate::Dtype;

    #[test]
    fn products_overflow_even_before_a_zero() {
        assert_eq!(num_elements(&[]), Some(1));
        assert_eq!(num_elements(&[0, usize::MAX, usize::MAX]), Some(0));
        assert_eq!(num_elements(&[usize::MAX, usize::MAX, 0]), None);
        assert_eq!(num_bits(Dtype::F4, &[3]), Some(12));
        assert_eq!(num_bits(Dtype::U8, &[usize::MAX / 4]), None);
        assert_eq!((byte_len(Dtype::F4, &[3]), byte_len(Dtype::F4, &[3, 2])), (None, Some(3)));
    }
}
