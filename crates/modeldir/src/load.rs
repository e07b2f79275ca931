//! Runs a plan: every byte of its tensors is read and owned when this returns.

#[cfg(any(test, feature = "tokio"))]
mod asked;
mod available;
mod budget;
mod cancel;
mod crew;
mod direct;
mod files;
mod fill;
mod into;
mod job;
mod memory;
mod memory_limit;
mod options;
mod progress;
mod queue;
mod reader;
mod relay;
mod residency;
mod scratch;
mod shards;
mod stats;
mod storage;
mod stream;
mod sync;
mod way;
mod windows;
mod worker;

use std::collections::BTreeMap;
use std::fs::File;
use std::time::Instant;

use tensorfile::{Buffer, BufferMut, Tensor};
use tracing::debug_span;
use tracing::field::Empty;

use crate::Result;
use crate::index::ShardId;
use crate::layout::in_memory;
use crate::plan::{LoadPlan, PlannedTensor};
use crate::store::TensorStore;
use crate::threads;

pub use available::MemoryCheck;
pub use cancel::Cancel;
pub use memory::Memory;
pub use memory_limit::MemoryLimit;
pub use options::{Io, LoadOptions};
pub use progress::Progress;
pub use stats::LoadStats;
pub use stream::StreamOptions;

#[cfg(feature = "tokio")]
pub(crate) use asked::Asked;
#[cfg(feature = "tokio")]
pub(crate) use stream::Taker;

pub(crate) use files::is_out_of_files;

use crew::Crew;
use files::OpenShards;
use job::Job;
use progress::Meter;
use queue::Queue;
use shards::{MAX_OPEN_SHARDS, Shards};
use storage::Storage;
use worker::Shared;

/// Reads that wait for a disk at the same time: enough to keep the fastest busy.
const WAITING_READS: usize = 8;

/// Reads that wait for a network at the same time.
const REMOTE_READS: usize = 16;

impl LoadPlan {
    /// Reads the tensors of the plan into memory that the store owns, in parallel.
    ///
    /// Blocks until every byte is there. The work is shared out by requests, so a single large
    /// shard or tensor uses every thread. What the page cache holds is copied from there; the rest
    /// is read past it, straight to its place; [`LoadOptions::io`] can say otherwise. Each shard is
    /// opened once for either way, and at most 32 files are open at a time, or as many as the
    /// process may open.
    /// The tensors of one shard share one region of memory, which is given back when the last of
    /// them is dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::File`](crate::ErrorKind::File) if a shard cannot be read, has changed since the
    /// model was opened, or if there is no memory;
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) if [`LoadOptions::cancel`] was set
    /// before all was read; [`ErrorKind::NotEnoughMemory`](crate::ErrorKind::NotEnoughMemory) before
    /// anything is allocated, if [`LoadOptions::memory_check`] says so;
    /// [`ErrorKind::Threads`](crate::ErrorKind::Threads) if no thread can be started. After an error
    /// no thread reads on.
    ///
    /// # Panics
    ///
    /// Panics as [`LoadOptions::progress`] did, when all threads have ended.
    pub fn load(&self, options: &LoadOptions<'_>) -> Result<TensorStore> {
        self.load_reusing(Memory::default(), options)
    }

    /// Does what [`load`](Self::load) does in memory that another store has given up, as far as it
    /// fits; the rest of it is given back first. What is too long by more than 32 MiB in all fits
    /// no more.
    ///
    /// Memory that is in use already costs no page faults and need not be zeroed.
    ///
    /// ```
    /// use modeldir::{LoadOptions, ModelDir};
    ///
    /// let model = ModelDir::open(modeldir_fixtures::model("llama"))?;
    /// let store = model.load()?;
    /// // Later: the files have been replaced by those of the next checkpoint.
    /// let next = ModelDir::open(modeldir_fixtures::model("llama"))?;
    /// let store = next.plan().load_reusing(store.into_memory(), &LoadOptions::default())?;
    /// # assert_eq!(store.len(), model.len());
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load); the memory is given back then.
    pub fn load_reusing(&self, memory: Memory, options: &LoadOptions<'_>) -> Result<TensorStore> {
        let start = Instant::now();
        let run = Run::new(self, options);
        let mut regions = memory::regions(self, memory, |new| run.check_memory(self, new))?;
        let stats = run.run_all(self, job::of_plan(self, &mut regions))?;
        let tensors = tensors(self, self.planned(), &memory::freeze(regions))?;
        let stats = LoadStats { elapsed: start.elapsed(), ..stats };
        Ok(TensorStore::new(&self.index, tensors, stats))
    }
}

/// What the loads of one call have in common.
struct Run<'a> {
    workers: Workers,
    options: LoadOptions<'a>,
    meter: Meter<'a>,
}

impl<'a> Run<'a> {
    fn new(plan: &LoadPlan, options: &LoadOptions<'a>) -> Self {
        let meter = Meter::new(plan.bytes_read(), options.progress);
        Self { workers: Workers::of(plan, options), options: *options, meter }
    }

    /// Makes sure that there is so much new memory for tensors, and that of the workers, if the
    /// caller wants to be sure.
    fn check_memory(&self, plan: &LoadPlan, new: u64) -> Result<()> {
        let of_workers = scratch::most(plan.requests(), self.workers.waiting, self.options.io);
        self.options.memory_check.check(&plan.index.root, new.saturating_add(of_workers))
    }

    /// Does these jobs, which are all of the plan and all that is to be done.
    fn run_all(&self, plan: &LoadPlan, jobs: Vec<Job<'_>>) -> Result<LoadStats> {
        let stats = self.run(plan, jobs)?;
        self.meter.finish();
        Ok(stats)
    }

    /// Does these jobs, which are all of the plan.
    fn run(&self, plan: &LoadPlan, jobs: Vec<Job<'_>>) -> Result<LoadStats> {
        let start = Instant::now();
        let Workers { copying, waiting } = self.workers;
        let requests = jobs.len();
        let span = debug_span!(
            "load",
            tensors = plan.len(),
            bytes = plan.bytes_read(),
            threads = Empty,
            direct = Empty,
            buffered = Empty,
            gathered = Empty,
            seconds = Empty,
            gib_s = Empty,
        );
        let _entered = span.enter();
        let shards = Shards::new(&plan.index, self.options.io, span.clone());
        let files = OpenShards::new(shards, MAX_OPEN_SHARDS);
        let shared = Shared { index: &plan.index, files, meter: &self.meter, span: span.clone() };
        let queue = Queue::new(jobs, &plan.index.root, self.options.cancel);
        let crew = Crew::new(copying, waiting);
        crew.run(&queue, &shared)?;
        queue.into_result()?;

        let counters = shared.files.opener().counters();
        let (elapsed, threads) = (start.elapsed(), crew.peak());
        counters.record(&span, elapsed);
        span.record("threads", threads);
        let (bytes_direct, bytes_gathered) = (counters.direct(), counters.gathered());
        let bytes_read = bytes_direct + counters.buffered();
        Ok(LoadStats { bytes_read, bytes_direct, bytes_gathered, requests, threads, elapsed })
    }
}

/// How many threads work at a time.
#[derive(Clone, Copy, Debug)]
struct Workers {
    /// While bytes come from the page cache.
    copying: usize,
    /// While reads wait for a disk or a network.
    waiting: usize,
}

impl Workers {
    /// As many as were asked for; or one for each processor, and more where reads wait.
    fn of(plan: &LoadPlan, options: &LoadOptions<'_>) -> Self {
        let root = File::open(&plan.index.root);
        let storage = root.map_or(Storage::Local, |root| storage::of(&root));
        let count = |least| threads::count_at_least(least, options.threads, plan.requests().len());
        let (copying, waiting) = match (storage, options.io) {
            (Storage::Remote, _) => (REMOTE_READS, REMOTE_READS),
            (Storage::Local, Io::Direct) => (WAITING_READS, WAITING_READS),
            (Storage::Local, Io::Auto) => (1, WAITING_READS),
            (Storage::Local, Io::Buffered) | (Storage::Memory, _) => (1, 1),
        };
        Self { copying: count(copying), waiting: count(waiting) }
    }
}

/// Tensors of the plan as parts of the regions of their shards.
fn tensors<'p>(
    plan: &LoadPlan,
    planned: impl ExactSizeIterator<Item = PlannedTensor<'p>>,
    buffers: &BTreeMap<ShardId, Buffer>,
) -> Result<Vec<Tensor>> {
    // Aligned for every element type, unlike a vector without memory.
    let empty = BufferMut::with_len(0).map_err(|kind| kind.at(&*plan.index.root))?.freeze();
    let mut tensors = Vec::with_capacity(planned.len());
    for planned in planned {
        let memory = planned.memory_range();
        // An empty tensor may have its place where no region is, or behind the end of one.
        let (buffer, range) = match buffers.get(&planned.stored().shard().id()) {
            Some(buffer) if !memory.is_empty() => {
                (buffer, in_memory(memory.start)..in_memory(memory.end))
            }
            _ => (&empty, 0..0),
        };
        let (name, dtype, shape) = (planned.name(), planned.dtype(), planned.shape());
        tensors.push(Tensor::new(name, dtype, shape, buffer.clone(), range)?);
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests;
