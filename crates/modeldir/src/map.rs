//! Maps a plan: tensors are views of the files, read when they are touched.
#![expect(unsafe_code, reason = "only the caller can guarantee that a mapped file does not change")]

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;
use tensorfile::{Buffer, ByteRuns, SourceFile, Tensor};
use tracing::debug_span;

use crate::load::{LoadStats, is_out_of_files};
use crate::plan::layout::in_memory;
use crate::plan::{LoadPlan, PlannedTensor};
use crate::store::TensorStore;
use crate::threads::MAX_OPEN_FILES;
use crate::weights::index::ShardId;
use crate::{Error, ErrorKind, Result, threads};

/// Bytes that a thread reads in at a time.
const PIECE: usize = 32 << 20;

/// Options of mapping a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapOptions {
    /// When the bytes are read.
    pub populate: Populate,
    /// Number of threads that read, for [`Populate::AtOnce`]. The default is the number of
    /// processors available to this process.
    pub threads: Option<NonZeroUsize>,
}

/// When the bytes of a mapped plan are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Populate {
    /// Page by page, as they are touched. A byte that cannot be read ends the process with SIGBUS.
    #[default]
    WhenTouched,
    /// All bytes of the plan, in parallel, before the store is returned. A byte that cannot be read
    /// is an error. The system may drop pages later and read them again when they are touched; a
    /// failure then still ends the process with SIGBUS.
    AtOnce,
}

impl LoadPlan {
    /// Maps the shards of the plan. No byte is read until it is touched, and none is copied.
    ///
    /// Each shard has one mapping, kept until the last of its tensors is dropped. A mapped tensor
    /// has the alignment of its place in the file, so elements may be unaligned: then
    /// [`as_slice`](tensorfile::Tensor::as_slice) is an error, and
    /// [`to_vec`](tensorfile::Tensor::to_vec) still copies.
    ///
    /// # Safety
    ///
    /// While the store or any of its tensors lives, nothing may write to the model's files or
    /// shorten them. If a file is shortened or its disk fails, touching the tensor ends the process
    /// with SIGBUS. If a file is written to, bytes change behind a shared reference, which is
    /// undefined behaviour.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::File`] if a shard cannot be mapped
    /// ([`NotMapped`](tensorfile::ErrorKind::NotMapped); [`load`](Self::load) needs no mapping) or
    /// has changed since the model was opened, [`ErrorKind::ScatteredMap`] for a part of a tensor
    /// that is not contiguous in its file, [`ErrorKind::CastMap`] for a tensor with a
    /// [cast](Self::cast).
    pub unsafe fn map(&self) -> Result<TensorStore> {
        // SAFETY: the contract of this function is the same.
        unsafe { self.map_with(&MapOptions::default()) }
    }

    /// Maps as [`map`](Self::map) does, with options.
    ///
    /// ```
    /// use modeldir::options::Populate;
    /// use modeldir::{MapOptions, ModelDir};
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// let model = ModelDir::open(path)?;
    /// let options = MapOptions { populate: Populate::AtOnce, ..MapOptions::default() };
    /// // SAFETY: nothing writes to the model directory while this process runs.
    /// let store = unsafe { model.plan().map_with(&options) }?;
    /// assert_eq!(store.get("model.norm.weight")?.bytes(), model.read("model.norm.weight")?.bytes());
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// As [`map`](Self::map), also with [`Populate::AtOnce`].
    ///
    /// # Errors
    ///
    /// As [`map`](Self::map); with [`Populate::AtOnce`] also [`ErrorKind::File`] for bytes that
    /// cannot be read or a file that changes meanwhile.
    pub unsafe fn map_with(&self, options: &MapOptions) -> Result<TensorStore> {
        let start = Instant::now();
        let _span = debug_span!("map", tensors = self.len()).entered();
        self.check_mappable()?;
        let mut maps: BTreeMap<ShardId, Buffer> = BTreeMap::new();
        // Files stay open while they are read in, to check afterwards that they have not changed.
        let (mut open, mut threads) = (Vec::new(), 0);
        for shard in self.shards() {
            let file = match self.index.open_shard(shard) {
                Err(error) if is_out_of_files(&error) && !open.is_empty() => {
                    threads = threads.max(self.bring_in(&maps, &mut open, options)?);
                    self.index.open_shard(shard)
                }
                opened => opened,
            }?;
            // SAFETY: the caller keeps the files unchanged while a tensor lives.
            maps.insert(shard, unsafe { file.map() }?);
            if options.populate == Populate::AtOnce {
                open.push((shard, file));
            }
            if open.len() == MAX_OPEN_FILES {
                threads = threads.max(self.bring_in(&maps, &mut open, options)?);
            }
        }
        threads = threads.max(self.bring_in(&maps, &mut open, options)?);
        let mut tensors = Vec::with_capacity(self.len());
        for planned in self.planned() {
            let map = &maps[&planned.stored().shard().id()];
            tensors.push(view(planned, map.clone())?);
        }
        let stats = LoadStats { threads, elapsed: start.elapsed(), ..LoadStats::default() };
        let store = TensorStore::new(&self.index, tensors, stats);
        Ok(store.with_origin(false, self.part_record.clone()))
    }

    /// The shards of the tensors, each once.
    fn shards(&self) -> Vec<ShardId> {
        let mut shards: Vec<_> =
            self.in_file_order().map(|planned| planned.stored().shard().id()).collect();
        shards.dedup();
        shards
    }

    /// Reads the planned bytes of these shards into memory, checks that no file has changed
    /// meanwhile, and closes the files. Returns the number of threads.
    fn bring_in(
        &self,
        maps: &BTreeMap<ShardId, Buffer>,
        open: &mut Vec<(ShardId, SourceFile)>,
        options: &MapOptions,
    ) -> Result<usize> {
        let mut pieces = self.pieces();
        pieces.retain(|(shard, _)| open.iter().any(|(open, _)| open == shard));
        if pieces.is_empty() {
            open.clear();
            return Ok(0);
        }
        let threads = threads::count(options.threads, pieces.len());
        let bring = |(shard, range): &(ShardId, Range<u64>)| {
            let map = &maps[shard];
            match map.populate(in_memory(range.start)..in_memory(range.end)) {
                // Old kernels: the bytes are read when they are touched.
                Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
                done => done.map_err(|error| self.unreadable(*shard, range, error)),
            }
        };
        threads::in_pool(threads, |pool| {
            pool.install(|| pieces.par_iter().map(bring).collect::<Vec<_>>())
        })
        .map_err(|error| error.at(&self.index.root))?
        .into_iter()
        .collect::<Result<()>>()?;
        for (shard, file) in open.drain(..) {
            let unchanged = file.check_unchanged();
            unchanged.map_err(|error| self.index.with_tensor(error.into(), shard, 0..0))?;
        }
        Ok(threads)
    }

    /// The bytes of all requests by shard, in pieces for the threads.
    fn pieces(&self) -> Vec<(ShardId, Range<u64>)> {
        let mut ranges: Vec<(ShardId, Range<u64>)> = Vec::new();
        for request in self.requests() {
            let Range { start, end } = request.read.span();
            match ranges.last_mut() {
                Some((shard, last)) if *shard == request.shard && last.end == start => {
                    last.end = end;
                }
                _ => ranges.push((request.shard, start..end)),
            }
        }
        let cut = |(shard, range): (ShardId, Range<u64>)| {
            let Range { start, end } = range;
            (start..end).step_by(PIECE).map(move |at| (shard, at..end.min(at + PIECE as u64)))
        };
        ranges.into_iter().flat_map(cut).collect()
    }

    fn unreadable(&self, shard: ShardId, range: &Range<u64>, error: io::Error) -> Error {
        let read = tensorfile::ErrorKind::Read { range: range.clone(), source: Arc::new(error) };
        let error = Error::from(read).at(self.index.shard_path(shard));
        self.index.with_tensor(error, shard, range.clone())
    }

    /// Fails for a tensor whose planned bytes are scattered in its file, or are cast.
    fn check_mappable(&self) -> Result<()> {
        for planned in self.planned() {
            let shard = planned.stored().shard().id();
            let refuse = |kind: ErrorKind| {
                Err(kind.at(self.index.shard_path(shard)).in_tensor(planned.name()))
            };
            if let Some(cast) = planned.cast() {
                return refuse(ErrorKind::CastMap { cast });
            }
            let runs = planned.runs().map_or(1, ByteRuns::num_runs);
            if runs > 1 {
                return refuse(ErrorKind::ScatteredMap { runs });
            }
        }
        Ok(())
    }
}

/// The planned part of a tensor as a view of its mapped file.
fn view(planned: PlannedTensor<'_>, file: Buffer) -> Result<Tensor> {
    let whole = planned.stored().file_range();
    let (start, end) = match planned.runs() {
        None => (whole.start, whole.end),
        Some(runs) => {
            let span = runs.span();
            (whole.start + span.start as u64, whole.start + span.end as u64)
        }
    };
    // The header was checked against the length of the mapping, so both ends are inside it.
    let range = in_memory(start)..in_memory(end);
    Ok(Tensor::new(planned.name(), planned.dtype(), planned.shape(), file, range)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::time::SystemTime;

    use tensorfile::{Float, Selection};

    use super::{MapOptions, Populate};
    use crate::{ErrorKind, LoadPlan, ModelDir};

    #[test]
    fn what_cannot_be_mapped_is_refused_before_a_file_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.safetensors");
        let tensor = modeldir_fixtures::Tensor::new("w", "F16", &[4, 4], vec![7; 32]);
        std::fs::write(&path, modeldir_fixtures::file(&[tensor])).unwrap();
        let plan = ModelDir::open(dir.path()).unwrap().plan();
        std::fs::remove_file(&path).unwrap();
        let columns = plan.select(|_| Some(Selection::all().with_range(1, 1..3))).unwrap();
        let options = MapOptions { populate: Populate::AtOnce, ..MapOptions::default() };
        // SAFETY: there is no file.
        let map = |plan: &LoadPlan| unsafe { plan.map_with(&options) }.unwrap_err();
        let (scattered, cast) = (map(&columns), map(&plan.cast(Float::F32)));
        assert!(matches!(scattered.kind(), ErrorKind::ScatteredMap { runs: 4, .. }));
        assert!(matches!(cast.kind(), ErrorKind::CastMap { .. }));
        assert!([scattered, cast].iter().all(|error| error.path() == Some(&path)));
        assert!(matches!(map(&plan).kind(), ErrorKind::File(_)), "{:?}", map(&plan));
    }

    #[test]
    fn a_file_that_changes_while_it_is_brought_in_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.safetensors");
        let tensor = modeldir_fixtures::Tensor::new("w", "U8", &[5000], vec![7; 5000]);
        std::fs::write(&path, modeldir_fixtures::file(&[tensor])).unwrap();
        let plan = ModelDir::open(dir.path()).unwrap().plan();
        let shard = plan.index.shards()[0].id();
        let file = plan.index.open_shard(shard).unwrap();
        // SAFETY: the bytes of the file stay, and nothing looks at the mapping.
        let maps = BTreeMap::from([(shard, unsafe { file.map() }.unwrap())]);
        let mut open = vec![(shard, file)];
        // Another time of modification, as after a write.
        let written = File::options().write(true).open(&path).unwrap();
        written.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let options = MapOptions { populate: Populate::AtOnce, ..MapOptions::default() };
        let error = plan.bring_in(&maps, &mut open, &options).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::File(tensorfile::ErrorKind::Changed { .. })));
        assert_eq!(error.path(), Some(&*path));
        assert!(open.is_empty());
    }
}
