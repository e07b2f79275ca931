//! `TensorView`: a tensor whose bytes are borrowed.

use std::fmt;

use crate::element::{self, ByteOrder, Element};
use crate::to_f32::to_f32;
use crate::{Dtype, Error, ErrorKind, Result, shape};

/// A tensor that borrows its bytes, from a [`Tensor`](crate::Tensor) or elsewhere.
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    name: &'a str,
    dtype: Dtype,
    shape: &'a [usize],
    bytes: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// A view of these bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SizeMismatch`] if the number of bytes is not what dtype and shape need.
    pub fn new(name: &'a str, dtype: Dtype, shape: &'a [usize], bytes: &'a [u8]) -> Result<Self> {
        shape::check(dtype, shape, bytes.len() as u64).map_err(|kind| kind.in_tensor(name))?;
        Ok(Self { name, dtype, shape, bytes })
    }

    /// A view of bytes already checked against dtype and shape.
    pub(crate) const fn of_checked(
        name: &'a str,
        dtype: Dtype,
        shape: &'a [usize],
        bytes: &'a [u8],
    ) -> Self {
        Self { name, dtype, shape, bytes }
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// The type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The extents, outermost first; empty for a scalar.
    #[must_use]
    pub const fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// The number of elements.
    #[must_use]
    pub fn num_elements(&self) -> usize {
        // `new` found that the number of bytes fits.
        shape::num_elements(self.shape).unwrap_or(usize::MAX)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes as they are in the file, little-endian on every machine.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements, in place.
    ///
    /// Tensors read into owned memory are always aligned for their dtype; mapped and borrowed ones
    /// only if the file aligns them.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::DtypeMismatch`] if the elements do not have type `T`.
    /// - [`ErrorKind::Unaligned`] if the bytes are not aligned for `T`; never for an empty tensor.
    /// - [`ErrorKind::InvalidBool`] if a byte of a `BOOL` tensor is neither 0 nor 1.
    /// - [`ErrorKind::BigEndianHost`] on a big-endian machine, if elements are wider than a byte.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        element::cast(self.dtype, self.bytes, ByteOrder::HOST).map_err(|kind| self.error(kind))
    }

    /// The elements, copied, at any alignment and in the machine's byte order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DtypeMismatch`] and [`ErrorKind::InvalidBool`] as [`as_slice`](Self::as_slice);
    /// [`ErrorKind::OutOfMemory`] if there is not enough memory for the copy.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        element::copy(self.dtype, self.bytes, ByteOrder::HOST).map_err(|kind| self.error(kind))
    }

    /// The elements of a float tensor, as `f32`.
    ///
    /// `F16`, `BF16` and the 8-bit floats are exact, and NaN stays NaN. `F64` is rounded to the
    /// nearest `f32`, ties to even, and to infinity beyond the largest.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DtypeMismatch`] for the integers, `BOOL`, `C64` and the packed `F4` and `F6`
    /// types; [`ErrorKind::OutOfMemory`] if there is not enough memory for the result.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        to_f32(self.dtype, self.bytes).map_err(|kind| self.error(kind))
    }

    fn error(&self, kind: ErrorKind) -> Error {
        kind.in_tensor(self.name)
    }

    pub(crate) fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("name", &self.name)
            .field("dtype", &self.dtype)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe("TensorView", f)
    }
}

#[cfg(test)]
mod tests {
    use super::TensorView;
    use crate::{Dtype, ErrorKind};

    #[test]
    fn errors_name_the_tensor() {
        let view = TensorView::new("t", Dtype::I16, &[2], &[0; 4]).unwrap();
        for error in [
            view.as_slice::<f32>().map(drop).unwrap_err(),
            view.to_vec::<f32>().map(drop).unwrap_err(),
            view.to_f32().map(drop).unwrap_err(),
            TensorView::new("t", Dtype::I16, &[2], &[0; 3]).map(drop).unwrap_err(),
        ] {
            assert_eq!((error.tensor(), error.path()), (Some("t"), None), "{error}");
        }
        let error = view.to_f32().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::DtypeMismatch { asked: "f32", .. }), "{error}");
    }
}
