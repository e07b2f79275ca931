//! One tensor of an index and its shard.

use std::ops::Range;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use tensorfile::{Dtype, TensorInfo};

use super::id::TensorId;
use super::shard::Shard;

/// A tensor of the model and the shard that holds it.
///
/// Serialised, it has its name, dtype, shape, bytes, shard and the range of its bytes in the file.
#[derive(Clone, Copy, Debug)]
pub struct IndexedTensor<'a> {
    pub(super) id: TensorId,
    pub(super) info: &'a TensorInfo,
    pub(super) shard: &'a Shard,
}

impl<'a> IndexedTensor<'a> {
    /// The name.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.info.name()
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(self) -> Dtype {
        self.info.dtype()
    }

    /// The extent of each dimension, in elements.
    #[must_use]
    pub fn shape(self) -> &'a [usize] {
        self.info.shape()
    }

    /// The length of the tensor in bytes.
    #[must_use]
    pub fn byte_len(self) -> usize {
        self.info.byte_len()
    }

    /// The range of the tensor's bytes in the shard's file.
    #[must_use]
    pub fn file_range(self) -> Range<u64> {
        self.info.file_range()
    }

    /// The weight file that holds the tensor.
    #[must_use]
    pub fn shard(self) -> &'a Shard {
        self.shard
    }

    /// The tensor's entry in the header.
    #[must_use]
    pub fn info(self) -> &'a TensorInfo {
        self.info
    }

    /// The id of the tensor in its index.
    pub(crate) fn id(self) -> TensorId {
        self.id
    }
}

impl Serialize for IndexedTensor<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tensor = serializer.serialize_struct("IndexedTensor", 6)?;
        tensor.serialize_field("name", self.name())?;
        tensor.serialize_field("dtype", self.dtype().name())?;
        tensor.serialize_field("shape", self.shape())?;
        tensor.serialize_field("byte_len", &self.byte_len())?;
        tensor.serialize_field("shard", &self.shard.path().to_string_lossy())?;
        tensor.serialize_field("file_range", &self.file_range())?;
        tensor.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::ModelDir;

    #[test]
    fn a_tensor_is_plain_data() {
        let model = ModelDir::open(modeldir_fixtures::model("llama")).unwrap();
        let norm = model.info("model.norm.weight").unwrap();
        let (start, shard) = (norm.file_range().start, norm.shard().path().to_str());
        let expected = json!({
            "name": "model.norm.weight", "dtype": "BF16", "shape": [64], "byte_len": 128,
            "shard": shard, "file_range": { "start": start, "end": start + 128 },
        });
        assert_eq!(serde_json::to_value(norm).unwrap(), expected);
    }
}
