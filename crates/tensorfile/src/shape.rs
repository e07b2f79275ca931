//! Elements, bits and bytes of a shape, checked for overflow.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use crate::{Dtype, ErrorKind};

/// The number of elements of this shape; 1 for a scalar.
///
/// As in the reference, a partial product that overflows is refused, even if a later extent is 0.
pub(crate) fn num_elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1, |product: usize, len| product.checked_mul(*len))
}

/// The bits of a tensor of this dtype and shape.
pub(crate) fn num_bits(dtype: Dtype, shape: &[usize]) -> Option<usize> {
    num_elements(shape)?.checked_mul(dtype.bits() as usize)
}

/// Fails unless a tensor of this dtype and shape has this many bytes.
pub(crate) fn check(dtype: Dtype, shape: &[usize], found: u64) -> Result<(), ErrorKind> {
    let Some(bits) = num_bits(dtype, shape) else {
        return Err(ErrorKind::ShapeOverflow { dtype, shape: shape.into() });
    };
    if bits % 8 != 0 {
        return Err(ErrorKind::PartialByte { dtype, shape: shape.into(), bits });
    }
    let needed = (bits / 8) as u64;
    if found != needed {
        return Err(ErrorKind::SizeMismatch { dtype, shape: shape.into(), found, needed });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{check, num_bits, num_elements};
    use crate::{Dtype, ErrorKind};

    #[test]
    fn products_overflow_even_before_a_zero() {
        assert_eq!(num_elements(&[]), Some(1));
        assert_eq!(num_elements(&[0, usize::MAX, usize::MAX]), Some(0));
        assert_eq!(num_elements(&[usize::MAX, usize::MAX, 0]), None);
        assert_eq!(num_bits(Dtype::F4, &[3]), Some(12));
        assert_eq!(num_bits(Dtype::U8, &[usize::MAX / 4]), None);
    }

    #[test]
    fn a_length_that_is_not_that_of_the_shape_is_refused() {
        check(Dtype::F4, &[3, 2], 3).unwrap();
        let part = check(Dtype::F4, &[3], 2);
        assert!(matches!(part, Err(ErrorKind::PartialByte { bits: 12, .. })), "{part:?}");
        let short = check(Dtype::F32, &[2, 2], 12);
        assert!(matches!(short, Err(ErrorKind::SizeMismatch { found: 12, needed: 16, .. })));
        let huge = check(Dtype::U8, &[usize::MAX, 2], 16);
        assert!(matches!(huge, Err(ErrorKind::ShapeOverflow { .. })), "{huge:?}");
    }
}
