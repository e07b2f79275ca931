//! One reading thread of a load.

use tensorfile::SourceFile;
use tracing::trace;

use super::progress::Meter;
use super::queue::{Job, Queue, StopOnPanic};
use crate::Result;
use crate::index::Index;

/// Takes jobs until there is none; the first error ends the load for all workers.
pub(super) fn run(index: &Index, queue: &Queue<'_>, meter: &Meter<'_>) {
    let _stop_on_panic = StopOnPanic(queue);
    let mut worker = Worker { index, open: None };
    let mut work = || -> Result<()> {
        while let Some(job) = queue.next() {
            let byte_len = job.destination.len() as u64;
            worker.read(job)?;
            meter.add(byte_len);
        }
        worker.close()
    };
    if let Err(error) = work() {
        queue.stop(Err(error));
    }
}

/// A thread's view of the model: at most one shard is open.
struct Worker<'a> {
    index: &'a Index,
    open: Option<(usize, SourceFile)>,
}

impl Worker<'_> {
    /// Fills the destination of a job.
    fn read(&mut self, job: Job<'_>) -> Result<()> {
        let Job { shard, file_range, destination } = job;
        trace!(shard, start = file_range.start, end = file_range.end, "request");
        let read = self.shard(shard)?.read_exact_at(destination, file_range.start);
        read.map_err(|error| self.index.with_tensor(error, shard, file_range).into())
    }

    /// The open file of a shard; the one open before is closed.
    fn shard(&mut self, shard: usize) -> Result<&SourceFile> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != shard) {
            self.close()?;
            self.open = Some((shard, self.index.open_shard(shard)?));
        }
        Ok(&self.open.as_ref().expect("opened above").1)
    }

    /// Closes the open shard, after making sure that nothing changed it while it was read.
    fn close(&mut self) -> Result<()> {
        match self.open.take() {
            Some((_, file)) => Ok(file.check_unchanged()?),
            None => Ok(()),
        }
    }
}
