//! One weight file of a model, and the parallel reading of all headers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use tensorfile::{Identity, Metadata, TensorFile, TensorInfo, reserve};

use super::id::ShardId;
use crate::open_options::OpenOptions;
use crate::threads::MAX_OPEN_FILES;
use crate::weights::join::{self, Fit, Wanted};
use crate::{Result, threads};

/// A weight file of the model.
#[derive(Clone, Debug)]
pub struct Shard {
    id: ShardId,
    file: ShardFile,
}

/// The facts read from a weight file.
#[derive(Clone, Debug)]
pub(super) struct ShardFile {
    path: Arc<Path>,
    identity: Identity,
    /// Sorted by name.
    tensors: Vec<TensorInfo>,
    trailing_bytes: u64,
    metadata: Option<Metadata>,
}

impl Shard {
    pub(super) fn new(id: ShardId, file: ShardFile) -> Self {
        Self { id, file }
    }

    /// The position in [`ModelDir::shards`](crate::ModelDir::shards).
    #[must_use]
    pub fn position(&self) -> usize {
        self.id.position()
    }

    /// The path, relative to [`ModelDir::path`](crate::ModelDir::path).
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// The length of the file in bytes, header included.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file.identity.byte_len()
    }

    /// The number of tensors in the file, including those that the model does not use.
    #[must_use]
    pub fn num_tensors(&self) -> usize {
        self.file.tensors.len()
    }

    /// The number of bytes after the last tensor, if [`HeaderOptions`](tensorfile::HeaderOptions)
    /// allow them.
    #[must_use]
    pub fn trailing_bytes(&self) -> u64 {
        self.file.trailing_bytes
    }

    /// The `__metadata__` of the header, if present.
    #[must_use]
    pub fn metadata(&self) -> Option<&Metadata> {
        self.file.metadata.as_ref()
    }

    /// The id of the shard in its index.
    pub(crate) fn id(&self) -> ShardId {
        self.id
    }

    /// The path, shared.
    pub(crate) fn shared_path(&self) -> Arc<Path> {
        Arc::clone(&self.file.path)
    }

    /// The tensors declared by the header, sorted by name.
    pub(crate) fn tensors(&self) -> &[TensorInfo] {
        &self.file.tensors
    }

    /// The identity of the file when its header was read.
    pub(crate) fn identity(&self) -> &Identity {
        &self.file.identity
    }
}

impl ShardFile {
    /// Reads the header of a shard and closes the file.
    fn open(root: &Path, path: &Path, options: &OpenOptions) -> tensorfile::Result<Self> {
        let file = TensorFile::open_with(root.join(path), &options.header)?;
        let (source, header) = file.into_parts();
        let (path, identity) = (path.into(), source.identity());
        let trailing_bytes = header.trailing_bytes();
        let (tensors, metadata) = header.into_parts();
        Ok(Self { path, identity, tensors, trailing_bytes, metadata })
    }
}

/// A shard and its fit with the weight map, or why it cannot be used.
pub(super) type Opened<'m> = tensorfile::Result<(ShardFile, Fit<'m>)>;

/// Reads the header of every shard and compares it with the tensors expected there, in parallel.
/// Each thread has one file open.
pub(super) fn open_all<'m>(
    root: &Path,
    paths: &[PathBuf],
    wanted: &[Vec<Wanted<'m>>],
    options: &OpenOptions,
) -> Result<Vec<Opened<'m>>> {
    let open = |(i, path): (usize, &PathBuf)| {
        let file = ShardFile::open(root, path, options)?;
        let fit = wanted.get(i).map_or(Ok(Fit::default()), |of| join::fit(&file.tensors, of));
        Ok((file, fit.map_err(|none| tensorfile::Error::from(none).at(root.join(path)))?))
    };
    // Memory for the list collected below.
    reserve::check::<Opened<'_>>(paths.len())?;
    let threads = threads::count(options.threads, paths.len()).min(MAX_OPEN_FILES);
    threads::in_pool(threads, |pool| {
        pool.install(|| paths.par_iter().enumerate().map(open).collect())
    })
}
