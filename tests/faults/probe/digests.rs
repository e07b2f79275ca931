//! What is compared of a model that was read: a digest for each tensor.

use std::collections::BTreeMap;
use std::path::PathBuf;

use modeldir::ModelDir;
use sha2::{Digest, Sha256};
use tensorfile::{Dtype, Tensor};

/// Digests of tensors by name, and which index chose them.
#[derive(Default)]
pub(crate) struct Digests {
    pub(crate) tensors: BTreeMap<String, String>,
    pub(crate) index: Option<PathBuf>,
}

impl Digests {
    /// Of a model whose tensors are to be added.
    pub(crate) fn of(model: &ModelDir) -> Self {
        Self { tensors: BTreeMap::new(), index: model.report().index_file.clone() }
    }

    pub(crate) fn add(&mut self, tensor: &Tensor) {
        self.add_parts(tensor.name(), tensor.dtype(), tensor.shape(), tensor.bytes());
    }

    pub(crate) fn add_parts(&mut self, name: &str, dtype: Dtype, shape: &[usize], bytes: &[u8]) {
        let mut digest = Sha256::new();
        digest.update(format!("{dtype} {shape:?} "));
        digest.update(bytes);
        let hex = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        self.tensors.insert(name.to_owned(), hex);
    }
}
