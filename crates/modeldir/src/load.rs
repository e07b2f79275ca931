//! Runs a plan: every byte of its tensors is read and owned when this returns.

mod files;
mod progress;
mod queue;
mod worker;

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use tensorfile::{Buffer, BufferMut, Tensor};
use tracing::debug_span;
use tracing::field::Empty;

use crate::Result;
use crate::plan::LoadPlan;
use crate::store::TensorStore;
use crate::threads;

use files::OpenShards;
use progress::Meter;
pub use progress::Progress;
use queue::{Job, Queue};
use worker::Shared;

/// How to run a plan.
///
/// ```
/// use modeldir::{LoadOptions, ModelDir};
///
/// let model = ModelDir::open(modeldir_fixtures::model("llama"))?;
/// let show = |progress: modeldir::Progress| {
///     println!("{} of {} bytes", progress.bytes_done, progress.bytes_total);
/// };
/// let options = LoadOptions { progress: Some(&show), ..LoadOptions::default() };
/// let store = model.plan().load(&options)?;
/// # assert_eq!(store.len(), model.len());
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct LoadOptions<'a> {
    /// Threads that read. The default is the number of processors that this process may use, at
    /// most 16. More help where each read waits for long: a network file system, a cold disk.
    pub threads: Option<NonZeroUsize>,
    /// Called as bytes arrive, by one thread at a time and at most about thirty times a second, and
    /// once more, from the calling thread, when the last byte is there. It never hears less than
    /// before.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl std::fmt::Debug for LoadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadOptions")
            .field("threads", &self.threads)
            .field("progress", &self.progress.map(|_| "Fn(Progress)"))
            .finish()
    }
}

/// What a load did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadStats {
    /// Bytes read from the shards.
    pub bytes_read: u64,
    /// Requests that brought them.
    pub requests: usize,
    /// Threads that read.
    pub threads: usize,
    /// Time from the start of the load until all tensors were there.
    pub elapsed: Duration,
}

impl LoadPlan {
    /// Reads the tensors of the plan into memory that the store owns, in parallel.
    ///
    /// Blocks until every byte is there. The work is shared out by requests, so a single large
    /// shard or tensor uses every thread. Each shard is opened once, and at most 32 are open at a
    /// time. The tensors of one shard share one region of memory, which is given back when the last
    /// of them is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) if a shard cannot be read, has changed since the model was opened, or if
    /// there is no memory. After an error no thread reads on.
    pub fn load(&self, options: &LoadOptions<'_>) -> Result<TensorStore> {
        let start = Instant::now();
        let threads = threads::count(options.threads, self.requests().len());
        let bytes = self.bytes_read();
        let span = debug_span!("load", tensors = self.len(), bytes, threads, seconds = Empty);
        let _entered = span.enter();

        let mut regions = allocate(self)?;
        let shared = Shared {
            index: &self.index,
            files: OpenShards::new(&self.index),
            queue: Queue::new(jobs(self, &mut regions)),
            meter: Meter::new(bytes, options.progress),
            span: span.clone(),
        };
        threads::in_pool(threads, |pool| pool.broadcast(|_| worker::run(&shared)))?;
        let Shared { queue, meter, .. } = shared;
        queue.into_result()?;
        meter.finish();

        let buffers: Vec<Buffer> = regions.into_iter().map(BufferMut::freeze).collect();
        let elapsed = start.elapsed();
        span.record("seconds", elapsed.as_secs_f64());
        let (bytes_read, requests) = (meter.bytes_done(), self.requests().len());
        let stats = LoadStats { bytes_read, requests, threads, elapsed };
        Ok(TensorStore::new(&self.index, tensors(self, &buffers)?, stats))
    }
}

/// One region for each shard; nothing is touched yet.
fn allocate(plan: &LoadPlan) -> Result<Vec<BufferMut>> {
    let mut regions = Vec::with_capacity(plan.memory().len());
    for (shard, &byte_len) in plan.index.shards.iter().zip(plan.memory()) {
        let path = plan.index.root.join(shard.path());
        let byte_len = usize::try_from(byte_len).unwrap_or(usize::MAX);
        regions.push(BufferMut::with_len(&path, byte_len)?);
    }
    Ok(regions)
}

/// Gives every request its part of a region.
fn jobs<'p>(plan: &'p LoadPlan, regions: &'p mut [BufferMut]) -> Vec<Job<'p>> {
    let mut jobs = Vec::with_capacity(plan.requests().len());
    let mut requests = plan.requests().iter().peekable();
    for (shard, region) in regions.iter_mut().enumerate() {
        let (mut rest, mut rest_offset) = (region.as_mut_slice(), 0);
        while let Some(request) = requests.next_if(|request| request.shard == shard) {
            // Requests of a shard are in the order of its memory, and none overlaps another.
            let skip = index_in(request.memory_offset - rest_offset);
            let (_, tail) = rest.split_at_mut(skip);
            let (destination, tail) = tail.split_at_mut(index_in(request.memory_len()));
            rest_offset = request.memory_offset + request.memory_len();
            rest = tail;
            let (file_range, rows) = (request.file_range.clone(), request.rows.as_deref());
            let number = jobs.len();
            jobs.push(Job { number, shard, file_range, rows, destination });
        }
    }
    jobs
}

/// The tensors of the plan as parts of their regions.
fn tensors(plan: &LoadPlan, buffers: &[Buffer]) -> Result<Vec<Tensor>> {
    let mut tensors = Vec::with_capacity(plan.len());
    for (planned, tensor) in plan.planned().iter().zip(plan.tensors()) {
        let memory = &planned.memory_range;
        // An empty tensor may have its place behind all others, where the region has ended.
        let range =
            if memory.is_empty() { 0..0 } else { index_in(memory.start)..index_in(memory.end) };
        let buffer = buffers[tensor.shard()].clone();
        let shape = planned.shape(tensor);
        tensors.push(Tensor::new(tensor.name(), tensor.dtype(), shape, buffer, range)?);
    }
    Ok(tensors)
}

/// A position in a region, which was allocated and so fits.
fn index_in(position: u64) -> usize {
    usize::try_from(position).expect("the region was allocated with a length in usize")
}
