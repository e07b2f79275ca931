//! Digests of tensors, as lines and as JSON.

use std::fmt;

use modeldir::TensorStore;
use rayon::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tensorfile::{Dtype, Tensor};

use crate::output::shown;

/// The SHA-256 of a tensor's bytes, with its dtype and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorDigest {
    /// The name of the tensor.
    pub(crate) name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    sha256: String,
}

impl TensorDigest {
    fn new(name: &str, tensor: &Tensor) -> Self {
        let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
        let sha256 = format!("{:x}", Sha256::digest(tensor.bytes()));
        Self { name: name.to_owned(), dtype, shape, sha256 }
    }

    /// All but the name, as JSON.
    pub(crate) fn json(&self) -> Value {
        json!({ "dtype": self.dtype.name(), "shape": self.shape, "sha256": self.sha256 })
    }
}

/// As a line of the digest, the name, the dtype and the shape.
impl fmt::Display for TensorDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, dtype, shape, sha256 } = self;
        write!(f, "{sha256}  {} {dtype} {shape:?}", shown(name))
    }
}

/// Returns the digests of a store's tensors, by name; calls `done` with the bytes of each.
pub(crate) fn digests(store: &TensorStore, done: impl Fn(u64) + Sync) -> Vec<TensorDigest> {
    let tensors: Vec<(&str, &Tensor)> = store.iter().collect();
    let digest = |&(name, tensor): &(&str, &Tensor)| {
        let digest = TensorDigest::new(name, tensor);
        done(tensor.byte_len() as u64);
        digest
    };
    tensors.par_iter().map(digest).collect()
}

/// Returns the SHA-256 of the lines of these digests.
pub(crate) fn digest_of(digests: &[TensorDigest]) -> String {
    let mut hash = Sha256::new();
    for digest in digests {
        hash.update(format!("{digest}\n"));
    }
    format!("{:x}", hash.finalize())
}
