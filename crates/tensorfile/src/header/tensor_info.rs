//! One tensor of a header that has been checked.

use std::ops::Range;

use super::dims::Dims;
use crate::{Dtype, shape};

/// One tensor as its header declares it: name, dtype, shape, and where in the file its bytes are.
///
/// The bytes are in row-major order, little-endian, and exactly as many as dtype and shape need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    name: Box<str>,
    /// Begin and end, counted from the start of the file.
    range: (u64, u64),
    shape: Dims,
    dtype: Dtype,
}

impl TensorInfo {
    pub(super) const fn new(name: Box<str>, dtype: Dtype, shape: Dims, range: (u64, u64)) -> Self {
        Self { name, range, shape, dtype }
    }

    /// The tensor's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Its extent in each dimension, outermost first; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.shape.as_slice()
    }

    /// Its bytes, counted from the start of the file.
    #[must_use]
    pub fn file_range(&self) -> Range<u64> {
        self.range.0..self.range.1
    }

    /// The number of its bytes.
    ///
    /// ```
    /// # let json = br#"{"w":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}}"#;
    /// # let file = [&(json.len() as u64).to_le_bytes(), &json[..], &[0; 3]].concat();
    /// # let header = tensorfile::Header::from_bytes(&file, &Default::default())?;
    /// # let packed = header.get("w").expect("the header names it");
    /// assert_eq!((packed.num_elements(), packed.byte_len()), (6, 3)); // two elements a byte
    /// # Ok::<(), tensorfile::Error>(())
    /// ```
    #[must_use]
    pub fn byte_len(&self) -> usize {
        let byte_len = self.range.1.saturating_sub(self.range.0);
        // The header check compared it with a product in `usize`.
        usize::try_from(byte_len).unwrap_or(usize::MAX)
    }

    /// The number of its elements; 1 for a scalar.
    #[must_use]
    pub fn num_elements(&self) -> usize {
        // The header check found the product of the bits to fit.
        shape::num_elements(self.shape()).unwrap_or(usize::MAX)
    }
}
