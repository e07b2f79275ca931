//! One weight file of a model, and the reading of all headers at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use tensorfile::{Header, Identity, TensorFile};

use crate::options::OpenOptions;
use crate::{Result, threads};

/// A weight file of the model.
#[derive(Clone, Debug)]
pub struct Shard {
    path: PathBuf,
    identity: Identity,
    num_tensors: usize,
    trailing_bytes: u64,
    metadata: Option<BTreeMap<String, String>>,
}

impl Shard {
    /// The path, relative to [`ModelDir::path`](crate::ModelDir::path).
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file, header included.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.identity.byte_len()
    }

    /// Tensors in the file, those that the model does not take from it included.
    #[must_use]
    pub fn num_tensors(&self) -> usize {
        self.num_tensors
    }

    /// Bytes after the last tensor, where [`HeaderOptions`](tensorfile::HeaderOptions) allow them.
    #[must_use]
    pub fn trailing_bytes(&self) -> u64 {
        self.trailing_bytes
    }

    /// The `__metadata__` of the header, if it has any.
    #[must_use]
    pub fn metadata(&self) -> Option<&BTreeMap<String, String>> {
        self.metadata.as_ref()
    }

    /// Which file it was when its header was read.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }
}

/// A shard whose header has been read; the file is closed again.
#[derive(Debug)]
pub(super) struct Opened {
    identity: Identity,
    pub(super) header: Header,
}

impl Opened {
    /// What stays of the shard once its tensors are in the index.
    pub(super) fn shard(&self, path: &Path) -> Shard {
        Shard {
            path: path.to_owned(),
            identity: self.identity,
            num_tensors: self.header.len(),
            trailing_bytes: self.header.trailing_bytes(),
            metadata: self.header.metadata().cloned(),
        }
    }
}

/// Reads the header of every shard, in parallel; each thread has one file open at a time.
pub(super) fn open_all(
    root: &Path,
    paths: &[PathBuf],
    options: &OpenOptions,
) -> Result<Vec<tensorfile::Result<Opened>>> {
    let open = |path: &PathBuf| {
        let file = TensorFile::open_with(root.join(path), &options.header)?;
        let (source, header) = file.into_parts();
        Ok(Opened { identity: source.identity(), header })
    };
    let pool = threads::pool(threads::count(options.threads, paths.len()))?;
    Ok(pool.install(|| paths.par_iter().map(open).collect()))
}
