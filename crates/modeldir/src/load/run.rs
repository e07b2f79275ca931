//! One run of a plan: its jobs, done by a crew.

use std::time::Instant;

use tracing::debug_span;
use tracing::field::Empty;

use super::crew::Crew;
use super::files::OpenShards;
use super::job::Job;
use super::options::{Io, LoadOptions};
use super::progress::Meter;
use super::queue::Queue;
use super::scratch;
use super::shards::{MAX_OPEN_SHARDS, ShardOpener};
use super::stats::LoadStats;
use super::storage::Storage;
use super::worker::Context;
use crate::plan::LoadPlan;
use crate::{Result, threads};

/// Reads that wait for a disk at the same time: enough to keep the fastest busy.
const WAITING_READS: usize = 8;

/// Reads that wait for a network at the same time.
const REMOTE_READS: usize = 16;

/// The state shared by the plans that one call runs.
pub(super) struct Run<'a> {
    workers: Workers,
    options: &'a LoadOptions,
    pub(super) meter: Meter<'a>,
}

impl<'a> Run<'a> {
    pub(super) fn new(plan: &LoadPlan, options: &'a LoadOptions) -> Self {
        let meter = Meter::new(plan.bytes_read(), options.progress.as_deref());
        Self { workers: Workers::of(plan, options), options, meter }
    }

    /// If the options say so, fails unless there is memory for `new` bytes of tensors and the buffers
    /// of the workers.
    pub(super) fn check_memory(&self, plan: &LoadPlan, new: u64) -> Result<()> {
        let of_workers = scratch::most(plan.requests(), self.workers.waiting, self.options.io);
        self.options.memory_check.check(&plan.index.root, new.saturating_add(of_workers))
    }

    /// Runs all jobs of the plan, as the whole of a load, and reports the end of its progress.
    pub(super) fn run_all(&self, plan: &LoadPlan, jobs: Vec<Job<'_>>) -> Result<LoadStats> {
        let stats = self.run(plan, jobs)?;
        self.meter.finish();
        Ok(stats)
    }

    /// Runs all jobs of a plan, which may be one of several of a load.
    pub(super) fn run(&self, plan: &LoadPlan, jobs: Vec<Job<'_>>) -> Result<LoadStats> {
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
        let shards = ShardOpener::new(&plan.index, self.options.io, span.clone());
        let files = OpenShards::new(shards, MAX_OPEN_SHARDS);
        let shared = Context { index: &plan.index, files, meter: &self.meter, span: span.clone() };
        let queue = Queue::new(jobs, &plan.index.root, self.options.cancel.as_ref());
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

/// The numbers of threads that work at the same time.
#[derive(Clone, Copy, Debug)]
struct Workers {
    /// While bytes come from the page cache.
    copying: usize,
    /// While reads wait for a disk or a network.
    waiting: usize,
}

impl Workers {
    /// As many as requested; by default one for each processor, and more if reads wait.
    fn of(plan: &LoadPlan, options: &LoadOptions) -> Self {
        // Judged by a file, because a folder may hold links to other file systems.
        let first = plan.requests().first().map(|request| plan.index.shard_path(request.shard));
        let storage = first.map_or(Storage::Local, |path| Storage::at(&path));
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

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use modeldir_fixtures::{ShardedModel, Tensor};
    use tensorfile::{Float, HUGE_PAGE};

    use super::{Run, Storage, WAITING_READS, Workers};
    use crate::load::{Io, LoadOptions, MemoryCheck};
    use crate::{ErrorKind, LoadPlan, ModelDir};

    /// A plan of as many requests, each of a shard of its own.
    fn plan(requests: usize) -> (tempfile::TempDir, LoadPlan) {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let model = (1..=requests).fold(ShardedModel::new(requests), |model, i| {
            model.tensor(i, Tensor::random(&format!("t{i}"), "BF16", &[64]))
        });
        model.write(folder.path()).unwrap();
        let plan = ModelDir::open(folder.path()).unwrap().plan();
        (folder, plan)
    }

    #[test]
    fn reads_that_wait_for_a_disk_have_more_workers_than_processors() {
        let (folder, plan) = plan(20);
        if Storage::at(folder.path()) != Storage::Local {
            let message = "reads_that_wait: NOT RUN, the folder of the crate is on no local disk\n";
            std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
            return;
        }
        let processors = std::thread::available_parallelism().unwrap().get().min(16);
        for (io, copying, waiting) in [
            (Io::Auto, processors, processors.max(WAITING_READS)),
            (Io::Direct, processors.max(WAITING_READS), processors.max(WAITING_READS)),
            (Io::Buffered, processors, processors),
        ] {
            let found = Workers::of(&plan, &LoadOptions { io, ..LoadOptions::default() });
            assert_eq!((found.copying, found.waiting), (copying, waiting), "{io:?}");
        }
        assert_eq!(WAITING_READS, 8);
    }

    #[test]
    fn the_memory_needed_is_that_of_tensors_and_of_every_worker() {
        let (_folder, plan) = plan(20);
        let cast = plan.cast(Float::F32);
        let new = 1 << 60;
        // A bounce buffer of direct reads for each, and a block of what is converted.
        for (plan, io, pages) in [
            (&plan, Io::Buffered, 0),
            (&plan, Io::Direct, 3),
            (&cast, Io::Buffered, 3),
            (&cast, Io::Direct, 6),
        ] {
            let (threads, memory_check) = (NonZeroUsize::new(3), MemoryCheck::Available);
            let options = LoadOptions { threads, io, memory_check, ..LoadOptions::default() };
            let checked = Run::new(plan, &options).check_memory(plan, new);
            if !cfg!(target_os = "linux") {
                return checked.unwrap();
            }
            let error = checked.unwrap_err();
            let ErrorKind::NotEnoughMemory { needed, .. } = error.kind() else { panic!("{error}") };
            assert_eq!(*needed, new + pages * HUGE_PAGE as u64, "{io:?}");
        }
    }
}
