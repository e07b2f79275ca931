//! Which shard holds which tensor: the headers of all shards, joined with the weight map.

mod shard;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tensorfile::reserve::{self, NoMemory};
use tensorfile::{Dtype, FileFact, SourceFile, TensorInfo};
use tracing::debug_span;
use tracing::field::Empty;

use crate::alias::{Alias, Aliases};
use crate::join::{self, Fit, Joined, Slot, Tensors, Wanted};
use crate::options::{MissingShards, OpenOptions, Unindexed};
use crate::report::StrayTensor;
use crate::resolve::Causes;
use crate::similar;
use crate::weight_map::WeightMap;
use crate::{Error, Fault, Result};

use shard::Opened;
pub use shard::Shard;

/// A tensor of the model and the shard that holds it.
#[derive(Clone, Copy, Debug)]
pub struct IndexedTensor<'a> {
    info: &'a TensorInfo,
    shard: usize,
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

    /// Bytes of the whole tensor.
    #[must_use]
    pub fn byte_len(self) -> usize {
        self.info.byte_len()
    }

    /// Where the bytes lie in the shard's file.
    #[must_use]
    pub fn file_range(self) -> Range<u64> {
        self.info.file_range()
    }

    /// The position of the shard in [`ModelDir::shards`](crate::ModelDir::shards).
    #[must_use]
    pub fn shard(self) -> usize {
        self.shard
    }

    /// What the header says of the tensor.
    #[must_use]
    pub fn info(self) -> &'a TensorInfo {
        self.info
    }
}

/// Faults of tensors that an error lists; more are only counted, for there may be millions.
const MAX_TENSOR_FAULTS: usize = 1000;

/// The tensors of a model directory by name, and the shards they lie in.
#[derive(Debug)]
pub(crate) struct Index {
    /// The folder to which shard paths are relative.
    pub(crate) root: PathBuf,
    pub(crate) shards: Vec<Shard>,
    /// Where each tensor is, by name; every name once.
    order: Vec<Slot>,
    pub(crate) aliases: Arc<Aliases>,
}

/// What building an index found and did not refuse.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) unindexed: Vec<StrayTensor>,
    pub(crate) stale: Vec<StrayTensor>,
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
        let span = debug_span!("index", shards = shard_paths.len(), tensors = Empty).entered();
        let no_memory = |none| no_memory(root, none);
        let wanted = wanted(map).map_err(no_memory)?;
        let opened = shard::open_all(root, shard_paths, &wanted, options)?;
        let mut index = Self {
            root: root.to_owned(),
            shards: Vec::new(),
            order: Vec::new(),
            aliases: Arc::default(),
        };
        let (fits, lost) = index.add_shards(shard_paths, opened, &wanted).map_err(no_memory)?;
        let joined = index.join(map, fits, options.unindexed).map_err(no_memory)?;
        // Of a model without any shard nothing is left to be opened.
        let skips = options.missing_shards == MissingShards::Skip && !index.shards.is_empty();
        let (mut skipped, mut faults) = (Vec::new(), Vec::new());
        for fault in lost {
            let is_skipped = skips && matches!(fault, Fault::MissingShard { .. });
            let list = if is_skipped { &mut skipped } else { &mut faults };
            reserve::push(list, fault).map_err(no_memory)?;
        }
        let (of_tensors, more) = index.join_faults(&joined, options.unindexed);
        for fault in of_tensors {
            reserve::push(&mut faults, fault).map_err(no_memory)?;
        }
        if !faults.is_empty() {
            return Err(Error::Incomplete { path: root.to_owned(), faults, more });
        }
        let unindexed = index.strays(&joined.unindexed).map_err(no_memory)?;
        let stale = index.strays(&joined.stale).map_err(no_memory)?;
        index.order = joined.order;
        span.record("tensors", index.len());
        Ok((index, Findings { unindexed, stale, skipped }))
    }

    /// Takes the shards that could be opened, and says how each fits, and why the others are lost.
    fn add_shards<'m>(
        &mut self,
        paths: &[PathBuf],
        opened: Vec<Opened<'m>>,
        wanted: &[Vec<Wanted<'m>>],
    ) -> Result<(Vec<Fit<'m>>, Vec<Fault>), NoMemory> {
        let (mut fits, mut lost, mut causes) = (Vec::new(), Vec::new(), Causes::new(&self.root));
        for (i, (path, opened)) in paths.iter().zip(opened).enumerate() {
            match opened {
                Ok((shard, fit)) => {
                    reserve::push(&mut self.shards, shard)?;
                    reserve::push(&mut fits, fit)?;
                }
                Err(error) => {
                    let tensors =
                        join::names(wanted.get(i).map(Vec::as_slice).unwrap_or_default())?;
                    reserve::push(&mut lost, shard_fault(&mut causes, path, error, tensors))?;
                }
            }
        }
        Ok((fits, lost))
    }

    /// Joins the shards with the weight map, if there is one.
    fn join<'m>(
        &self,
        map: Option<&'m WeightMap>,
        fits: Vec<Fit<'m>>,
        unindexed: Unindexed,
    ) -> Result<Joined<'m>, NoMemory> {
        match map {
            Some(map) => join::with_map(self, fits, map.iter().map(|(name, _)| name), unindexed),
            None => join::without_map(self, self.shards.iter().map(Shard::num_tensors)),
        }
    }

    /// Number of tensors.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Bytes of all tensors.
    pub(crate) fn byte_len(&self) -> u64 {
        self.iter().map(|tensor| tensor.byte_len() as u64).fold(0, u64::saturating_add)
    }

    /// The tensors, by name.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = IndexedTensor<'_>> {
        self.order.iter().map(|slot| self.at(*slot))
    }

    /// The tensor at a position in the order of names.
    pub(crate) fn get(&self, position: usize) -> Option<IndexedTensor<'_>> {
        self.order.get(position).map(|slot| self.at(*slot))
    }

    /// The position of a tensor by its stored name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.order.binary_search_by(|slot| self.at(*slot).name().cmp(name)).ok()
    }

    fn at(&self, slot: Slot) -> IndexedTensor<'_> {
        let shard = slot.shard as usize;
        IndexedTensor { info: &self.shards[shard].tensors()[slot.tensor as usize], shard }
    }

    /// The error for a name that is neither stored nor an alias.
    pub(crate) fn not_found(&self, name: &str) -> Error {
        let hint = self
            .aliases
            .get(name)
            .map_or_else(|| similar::hint(name, self.iter().map(IndexedTensor::name)), Alias::hint);
        Error::TensorNotFound { path: self.root.clone(), tensor: name.into(), hint: hint.into() }
    }

    /// Opens a shard again, and makes sure that it is the file whose header was read.
    pub(crate) fn open_shard(&self, shard: usize) -> tensorfile::Result<SourceFile> {
        let file = SourceFile::open(self.shard_path(shard))?;
        file.check_same(self.shards[shard].identity())?;
        Ok(file)
    }

    /// Where the file of a shard is.
    pub(crate) fn shard_path(&self, shard: usize) -> PathBuf {
        self.root.join(self.shards[shard].path())
    }

    /// Puts a name into the error of bytes of a shard that were to be read: that of the first tensor
    /// that has lost bytes if the file is shorter now, or else of the first one in the range.
    pub(crate) fn with_tensor(
        &self,
        error: tensorfile::Error,
        shard: usize,
        file_range: Range<u64>,
    ) -> tensorfile::Error {
        let Range { start, end } = file_range;
        let wanted = match &error {
            tensorfile::Error::Changed { what: FileFact::ByteLen, after, .. } => {
                u64::try_from(*after).unwrap_or(0)..u64::MAX
            }
            // If the file has grown again, nobody knows what was missing.
            tensorfile::Error::ReadPastEnd { start: first, byte_len, .. } if *byte_len < end => {
                start.max(*first).max(*byte_len)..end
            }
            tensorfile::Error::Read { start: first, .. } => start.max(*first)..end,
            _ => start..end,
        };
        let touched = |tensor: &IndexedTensor<'_>| {
            let range = tensor.file_range();
            tensor.shard() == shard && range.start < wanted.end && wanted.start < range.end
        };
        match self.iter().filter(touched).min_by_key(|tensor| tensor.file_range().start) {
            Some(tensor) => error.with_tensor(tensor.name()),
            None => error,
        }
    }

    fn strays(&self, slots: &[Slot]) -> Result<Vec<StrayTensor>, NoMemory> {
        let mut strays = reserve::list(slots.len())?;
        for slot in slots {
            let tensor = reserve::boxed(self.at(*slot).name())?.into();
            let shard = self.shards[slot.shard as usize].shared_path();
            strays.push(StrayTensor { tensor, shard });
        }
        Ok(strays)
    }

    /// What the join found that leaves no whole model: the first faults, and how many more.
    fn join_faults(&self, joined: &Joined<'_>, unindexed: Unindexed) -> (Vec<Fault>, usize) {
        let shard = |i: u32| self.shards[i as usize].shared_path();
        let name = |slot: Slot| self.at(slot).name().into();
        let absent = joined.absent.iter().map(|absent| Fault::NotInShard {
            tensor: absent.name.into(),
            shard: shard(absent.shard),
            found_in: absent.found_in.map(shard),
        });
        let duplicates = joined.duplicates.iter().map(|&(first, second)| Fault::DuplicateTensor {
            tensor: name(first),
            first: shard(first.shard),
            second: shard(second.shard),
        });
        let refused = joined.unindexed.iter().filter(|_| unindexed == Unindexed::Error);
        let unindexed = refused
            .map(|&stray| Fault::Unindexed { tensor: name(stray), shard: shard(stray.shard) });
        let mut all = absent.chain(duplicates).chain(unindexed);
        let first = all.by_ref().take(MAX_TENSOR_FAULTS).collect();
        (first, all.count())
    }
}

impl Tensors for Index {
    fn name(&self, slot: Slot) -> &str {
        self.at(slot).name()
    }
}

/// What the map wants of each shard; nothing where there is no map.
fn wanted(map: Option<&WeightMap>) -> Result<Vec<Vec<Wanted<'_>>>, NoMemory> {
    map.map_or(Ok(Vec::new()), |map| join::wanted(map.iter(), &map.tensors_per_shard()?))
}

fn no_memory(root: &Path, NoMemory(byte_len): NoMemory) -> Error {
    tensorfile::Error::OutOfMemory { path: root.to_owned(), byte_len }.into()
}

/// The fault of a shard that cannot be used.
fn shard_fault(
    causes: &mut Causes<'_>,
    shard: &Path,
    error: tensorfile::Error,
    tensors: Vec<String>,
) -> Fault {
    let shard: Arc<Path> = shard.into();
    match error {
        tensorfile::Error::NotFound { .. } | tensorfile::Error::DanglingLink { .. } => {
            Fault::MissingShard { cause: causes.cause(&shard), shard, tensors }
        }
        error => Fault::UnusableShard { shard, error, tensors },
    }
}
