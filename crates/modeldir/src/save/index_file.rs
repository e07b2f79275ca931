//! The text of an index to write, in the order and form of `huggingface_hub`.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// An index to write.
pub(super) struct IndexFile<'a> {
    /// Bytes of all tensors.
    pub(super) total_size: u64,
    /// The other entries of `metadata`.
    pub(super) metadata: &'a BTreeMap<String, String>,
    /// Pairs of tensor name and shard name, in the order of the shards.
    pub(super) weight_map: Vec<(&'a str, &'a str)>,
}

impl IndexFile<'_> {
    /// The bytes of the file: JSON indented by two spaces.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("keys are strings, and a vector takes every byte")
    }
}

impl Serialize for IndexFile<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut index = serializer.serialize_map(Some(2))?;
        index.serialize_entry("metadata", &Metadata(self))?;
        index.serialize_entry("weight_map", &InOrder(&self.weight_map))?;
        index.end()
    }
}

struct Metadata<'a>(&'a IndexFile<'a>);

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut metadata = serializer.serialize_map(None)?;
        metadata.serialize_entry("total_size", &self.0.total_size)?;
        for (key, value) in self.0.metadata {
            metadata.serialize_entry(key, value)?;
        }
        metadata.end()
    }
}

/// A JSON object that keeps the order of its pairs.
struct InOrder<'a>(&'a [(&'a str, &'a str)]);

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::IndexFile;

    #[test]
    fn the_text_is_that_of_the_reference() {
        let metadata = BTreeMap::from([("lm_head.weight".to_owned(), "b".to_owned())]);
        let weight_map = vec![
            ("b", "model-00001-of-00002.safetensors"),
            ("a", "model-00002-of-00002.safetensors"),
        ];
        let index = IndexFile { total_size: 7, metadata: &metadata, weight_map };
        // As json.dump(index, file, indent=2) of Python writes it.
        let expected = r#"{
  "metadata": {
    "total_size": 7,
    "lm_head.weight": "b"
  },
  "weight_map": {
    "b": "model-00001-of-00002.safetensors",
    "a": "model-00002-of-00002.safetensors"
  }
}"#;
        assert_eq!(String::from_utf8(index.to_bytes()).unwrap(), expected);
    }
}
