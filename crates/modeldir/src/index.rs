//! Which shard holds which tensor: the headers of all shards, joined with the weight map.

mod shard;

use std::ops::Range;
use std::path::{Path, PathBuf};

use tensorfile::{Dtype, SourceFile, TensorInfo};
use tracing::debug_span;

use crate::alias::{Alias, Aliases};
use crate::join::{self, Joined, Mapped, Misplaced};
use crate::options::{MissingShards, OpenOptions, Unindexed};
use crate::resolve;
use crate::similar;
use crate::weight_map::WeightMap;
use crate::{Error, Fault, Result};

pub use shard::Shard;

/// A tensor of the model and the shard that holds it.
#[derive(Clone, Debug)]
pub struct IndexedTensor {
    info: TensorInfo,
    pub(crate) shard: u32,
}

impl IndexedTensor {
    pub(crate) const fn new(info: TensorInfo, shard: u32) -> Self {
        Self { info, shard }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.info.name()
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.info.dtype()
    }

    /// The extent of each dimension, in elements.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.info.shape()
    }

    /// Bytes of the whole tensor.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.info.byte_len()
    }

    /// Where the bytes lie in the shard's file.
    #[must_use]
    pub fn file_range(&self) -> Range<u64> {
        self.info.file_range()
    }

    /// The position of the shard in [`ModelDir::shards`](crate::ModelDir::shards).
    #[must_use]
    pub fn shard(&self) -> usize {
        self.shard as usize
    }

    /// What the header says of the tensor.
    #[must_use]
    pub fn info(&self) -> &TensorInfo {
        &self.info
    }
}

/// The tensors of a model directory by name, and the shards they lie in.
#[derive(Debug)]
pub(crate) struct Index {
    /// The folder to which shard paths are relative.
    pub(crate) root: PathBuf,
    pub(crate) shards: Vec<Shard>,
    /// By name; every name once.
    pub(crate) tensors: Vec<IndexedTensor>,
    pub(crate) aliases: Aliases,
}

/// What building an index found and did not refuse.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) unindexed: Vec<Misplaced>,
    pub(crate) stale: Vec<Misplaced>,
    pub(crate) skipped: Vec<Fault>,
}

impl Index {
    /// Reads the headers of these shards, relative to `root`, and joins them with the weight map.
    ///
    /// Every fault is in the one error: shards that are missing or cannot be used, tensors that
    /// are not where the map has them, tensors that two shards hold.
    pub(crate) fn build(
        root: &Path,
        shard_paths: &[PathBuf],
        map: Option<&WeightMap>,
        options: &OpenOptions,
    ) -> Result<(Self, Findings)> {
        let _span = debug_span!("index", shards = shard_paths.len()).entered();
        let opened = shard::open_all(root, shard_paths, options)?;
        let lost_tensors = map.map(WeightMap::tensors_per_shard).unwrap_or_default();

        let mut index = Self::empty(root);
        let (mut headers, mut lost) = (Vec::new(), Vec::new());
        // For each shard of the map its position among those that are there.
        let mut positions = Vec::with_capacity(shard_paths.len());
        for (i, (path, opened)) in shard_paths.iter().zip(opened).enumerate() {
            positions.push(opened.is_ok().then_some(index_in_u32(headers.len())));
            match opened {
                Ok(opened) => {
                    index.shards.push(opened.shard(path));
                    headers.push(opened.header.into_tensors());
                }
                Err(error) => {
                    let tensors = lost_tensors.get(i).copied().unwrap_or(0);
                    lost.push(shard_fault(root, path, error, tensors));
                }
            }
        }
        let mapped =
            map.map(|map| map.iter().map(|(name, shard)| Mapped { name, shard: positions[shard] }));
        let joined = join::join(headers, mapped, options.unindexed);
        let skip = options.missing_shards == MissingShards::Skip;
        let (skipped, mut faults) = if skip { (lost, Vec::new()) } else { (Vec::new(), lost) };
        faults.extend(index.join_faults(&joined, options.unindexed));
        if !faults.is_empty() {
            return Err(Error::Incomplete { path: root.to_owned(), faults });
        }
        index.tensors = joined.tensors;
        Ok((index, Findings { unindexed: joined.unindexed, stale: joined.stale, skipped }))
    }

    /// The position of a tensor by its stored name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.tensors.binary_search_by(|tensor| tensor.name().cmp(name)).ok()
    }

    /// The error for a name that is neither stored nor an alias.
    pub(crate) fn not_found(&self, name: &str) -> Error {
        let hint = self.aliases.get(name).map_or_else(
            || similar::hint(name, self.tensors.iter().map(IndexedTensor::name)),
            Alias::hint,
        );
        Error::TensorNotFound { path: self.root.clone(), tensor: name.into(), hint: hint.into() }
    }

    /// Opens a shard again, and makes sure that it is the file whose header was read.
    pub(crate) fn open_shard(&self, shard: usize) -> Result<SourceFile> {
        let shard = &self.shards[shard];
        let file = SourceFile::open(self.root.join(shard.path()))?;
        file.check_same(shard.identity())?;
        Ok(file)
    }

    /// Puts the name of the first tensor that a failed read was for into its error.
    pub(crate) fn with_tensor(
        &self,
        error: tensorfile::Error,
        shard: usize,
        file_range: Range<u64>,
    ) -> tensorfile::Error {
        let touched = |tensor: &&IndexedTensor| {
            let range = tensor.file_range();
            tensor.shard() == shard && range.start < file_range.end && file_range.start < range.end
        };
        let first =
            self.tensors.iter().filter(touched).min_by_key(|tensor| tensor.file_range().start);
        match first {
            Some(tensor) => error.with_tensor(tensor.name()),
            None => error,
        }
    }

    fn empty(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            shards: Vec::new(),
            tensors: Vec::new(),
            aliases: Aliases::default(),
        }
    }

    /// What the join found that leaves no whole model.
    fn join_faults(&self, joined: &Joined, unindexed: Unindexed) -> Vec<Fault> {
        let shard = |i: u32| self.shards[i as usize].path().to_owned();
        let absent = joined.absent.iter().map(|absent| Fault::NotInShard {
            tensor: absent.name.as_str().into(),
            shard: shard(absent.shard),
            found_in: absent.found_in.map(shard),
        });
        let duplicates = joined.duplicates.iter().map(|duplicate| Fault::DuplicateTensor {
            tensor: duplicate.name.as_str().into(),
            first: shard(duplicate.first),
            second: shard(duplicate.second),
        });
        let refused = joined.unindexed.iter().filter(|_| unindexed == Unindexed::Error);
        let unindexed = refused.map(|stray| Fault::Unindexed {
            tensor: stray.name.as_str().into(),
            shard: shard(stray.shard),
        });
        absent.chain(duplicates).chain(unindexed).collect()
    }
}

/// The position of a shard; each has a file of its own, so there are fewer than 2^32.
fn index_in_u32(position: usize) -> u32 {
    u32::try_from(position).expect("a directory holds fewer than 2^32 shards")
}

/// The fault of a shard that cannot be used.
fn shard_fault(root: &Path, shard: &Path, error: tensorfile::Error, tensors: usize) -> Fault {
    let shard = shard.to_owned();
    match error {
        tensorfile::Error::NotFound { .. } | tensorfile::Error::DanglingLink { .. } => {
            Fault::MissingShard { cause: resolve::missing_cause(root, &shard), shard, tensors }
        }
        error => Fault::UnusableShard { shard, error, tensors },
    }
}
