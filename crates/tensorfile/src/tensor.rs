//! `Tensor`: name, dtype, shape and shared bytes.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::element::Element;
use crate::view::TensorView;
use crate::{Buffer, Dtype, ErrorKind, Result, shape};

/// A tensor whose bytes are in a shared buffer.
///
/// Cloning copies three pointers. The bytes are as in the file: little-endian, row-major, packed
/// dtypes packed.
///
/// ```
/// use tensorfile::{Buffer, Dtype, Tensor};
///
/// let bytes = [1.5f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
/// let tensor = Tensor::new("bias", Dtype::F32, [2], Buffer::from_vec(bytes), 0..8)?;
/// assert_eq!(tensor.shape(), [2]);
/// assert_eq!(tensor.to_vec::<f32>()?, [1.5, -2.0]);
/// assert!(tensor.as_slice::<i32>().is_err());
/// # Ok::<(), tensorfile::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    name: Arc<str>,
    dtype: Dtype,
    shape: Arc<[usize]>,
    buffer: Buffer,
    range: Range<usize>,
}

impl Tensor {
    /// A tensor whose bytes are this range of the buffer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SizeMismatch`] if the range is not inside the buffer, or not as long as dtype
    /// and shape need.
    pub fn new(
        name: impl Into<Arc<str>>,
        dtype: Dtype,
        shape: impl Into<Arc<[usize]>>,
        buffer: Buffer,
        range: Range<usize>,
    ) -> Result<Self> {
        let (name, shape) = (name.into(), shape.into());
        let asked = range.end.saturating_sub(range.start);
        shape::check(dtype, &shape, asked as u64).map_err(|kind| kind.in_tensor(&*name))?;
        if buffer.get(range.clone()).is_some() {
            return Ok(Self { name, dtype, shape, buffer, range });
        }
        let found = buffer.len().min(range.end).saturating_sub(range.start) as u64;
        let (shape, needed) = (shape.as_ref().into(), asked as u64);
        Err(ErrorKind::SizeMismatch { dtype, shape, found, needed }.in_tensor(&*name))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The extents, outermost first; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    #[must_use]
    pub fn num_elements(&self) -> usize {
        self.view().num_elements()
    }

    /// The number of bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.range.end - self.range.start
    }

    /// The bytes as they are in the file, little-endian on every machine.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }

    /// The elements, in place.
    ///
    /// # Errors
    ///
    /// As [`TensorView::as_slice`].
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.view().as_slice()
    }

    /// The elements, copied.
    ///
    /// # Errors
    ///
    /// As [`TensorView::to_vec`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.view().to_vec()
    }

    /// The elements of a float tensor, as `f32`.
    ///
    /// # Errors
    ///
    /// As [`TensorView::to_f32`].
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        self.view().to_f32()
    }

    /// The same tensor, borrowed.
    #[must_use]
    pub fn view(&self) -> TensorView<'_> {
        TensorView::of_checked(&self.name, self.dtype, &self.shape, self.bytes())
    }

    /// The buffer of the bytes, which other tensors may share.
    #[must_use]
    pub const fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().describe("Tensor", f)
    }
}

#[cfg(test)]
mod tests {
    use super::Tensor;
    use crate::{Buffer, BufferMut, Dtype, Error, ErrorKind, TensorView};
    use std::ops::Range;

    fn tensor(dtype: Dtype, shape: &[usize], range: Range<usize>) -> Result<Tensor, Error> {
        Tensor::new("t", dtype, shape, Buffer::from_vec(vec![0; 16]), range)
    }

    #[test]
    fn a_range_of_the_wrong_length_is_refused() {
        let error = tensor(Dtype::F32, &[2, 2], 0..12).unwrap_err();
        assert_eq!(error.to_string(), r#"tensor "t": 12 bytes, shape [2, 2] of F32 needs 16"#);
        assert!(tensor(Dtype::F32, &[2, 2], 0..16).is_ok());
    }

    #[test]
    fn a_range_outside_the_buffer_is_refused() {
        for (range, left) in [(8..24, 8), (16..32, 0), (100..116, 0)] {
            let error = tensor(Dtype::F32, &[2, 2], range).unwrap_err();
            let kind = error.kind();
            assert!(
                matches!(kind, ErrorKind::SizeMismatch { found, needed: 16, .. } if *found == left),
                "{error}"
            );
        }
        #[expect(clippy::reversed_empty_ranges, reason = "the case to refuse")]
        let reversed = 8..4;
        assert!(tensor(Dtype::F32, &[0], reversed).is_err());
        assert!(tensor(Dtype::F32, &[0], 16..16).is_ok());
        assert!(tensor(Dtype::F32, &[0], 17..17).is_err());
    }

    #[test]
    fn shapes_without_a_byte_length_are_refused() {
        let error = tensor(Dtype::F4, &[3], 0..2).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"tensor "t": shape [3] of F4 is 12 bits, not a whole number of bytes"#
        );
        assert!(tensor(Dtype::U8, &[usize::MAX, 2], 0..16).is_err());
        assert!(tensor(Dtype::F4, &[3, 2], 0..3).is_ok());
    }

    #[test]
    fn scalars_have_one_element_and_zero_extents_none() {
        let scalar = tensor(Dtype::I64, &[], 0..8).unwrap();
        assert_eq!((scalar.num_elements(), scalar.byte_len()), (1, 8));
        let empty = tensor(Dtype::I64, &[3, 0], 3..3).unwrap();
        assert_eq!((empty.num_elements(), empty.byte_len()), (0, 0));
        assert!(empty.as_slice::<i64>().unwrap().is_empty());
    }

    #[test]
    fn clones_share_the_bytes_and_outlive_the_first() {
        let mut filling = BufferMut::with_len(16).unwrap();
        filling.as_mut_slice().copy_from_slice(&[1; 16]);
        let first = Tensor::new("t", Dtype::U32, [2], filling.freeze(), 8..16).unwrap();
        let second = first.clone();
        assert_eq!(first.bytes().as_ptr(), second.bytes().as_ptr());
        drop(first);
        assert_eq!(second.to_vec::<u32>().unwrap(), [0x0101_0101; 2]);
        assert_eq!(second.buffer().len(), 16);
    }

    #[test]
    fn debug_shows_no_bytes() {
        let tensor = tensor(Dtype::U8, &[16], 0..16).unwrap();
        assert_eq!(format!("{tensor:?}"), r#"Tensor { name: "t", dtype: U8, shape: [16], .. }"#);
    }

    #[test]
    fn tensors_cross_threads() {
        fn check<T: Send + Sync>() {}
        check::<Tensor>();
        check::<TensorView<'_>>();
    }
}
