//! `TensorInfo`: one tensor of a checked header.

use std::ops::Range;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::dims::Dims;
use crate::{Dtype, shape};

/// One tensor of a header: name, dtype, shape, and the range of its bytes in the file.
///
/// The bytes are row-major and little-endian, and exactly as many as dtype and shape need.
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

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The extent of each dimension, outermost first; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.shape.as_slice()
    }

    /// The range of its bytes, counted from the start of the file.
    #[must_use]
    pub fn file_range(&self) -> Range<u64> {
        self.range.0..self.range.1
    }

    /// The number of bytes.
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
        // The header check found it equal to a product in `usize`.
        usize::try_from(byte_len).unwrap_or(usize::MAX)
    }

    /// The number of elements; 1 for a scalar.
    #[must_use]
    pub fn num_elements(&self) -> usize {
        // The header check found that the number of bits fits.
        shape::num_elements(self.shape()).unwrap_or(usize::MAX)
    }
}

/// Name, dtype, shape and the range of bytes in the file.
impl Serialize for TensorInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut info = serializer.serialize_struct("TensorInfo", 4)?;
        info.serialize_field("name", self.name())?;
        info.serialize_field("dtype", &self.dtype)?;
        info.serialize_field("shape", self.shape())?;
        info.serialize_field("file_range", &self.file_range())?;
        info.end()
    }
}

#[cfg(test)]
mod tests {
    use super::TensorInfo;
    use crate::Dtype;
    use crate::header::dims::DimsBuilder;

    #[test]
    fn a_tensor_is_serialized_with_all_that_is_known_of_it() {
        let mut shape = DimsBuilder::default();
        [2, 3].into_iter().try_for_each(|len| shape.push(len)).unwrap();
        let info = TensorInfo::new("w".into(), Dtype::F4, shape.finish(), (64, 67));
        let json = serde_json::to_string(&info).unwrap();
        let expected =
            r#"{"name":"w","dtype":"F4","shape":[2,3],"file_range":{"start":64,"end":67}}"#;
        assert_eq!(json, expected);
    }
}
