//! One reading thread of a load.

use tracing::{Span, trace_span};

use super::files::{OpenShard, OpenShards};
use super::progress::Meter;
use super::queue::{Job, Queue, StopOnPanic};
use crate::index::Index;
use crate::{Error, Result};

/// What the workers of one load share.
pub(super) struct Shared<'a, 'p> {
    pub(super) index: &'a Index,
    pub(super) files: OpenShards<'a>,
    pub(super) queue: Queue<'p>,
    pub(super) meter: Meter<'a>,
    /// The span of the load, which other threads have to enter themselves.
    pub(super) span: Span,
}

/// Takes jobs until there is none; the first error ends the load for all workers.
pub(super) fn run(shared: &Shared<'_, '_>) {
    let _entered = shared.span.enter();
    let _stop_on_panic = StopOnPanic(&shared.queue);
    if let Err(error) = work(shared) {
        shared.queue.stop(Err(error));
    }
}

fn work(shared: &Shared<'_, '_>) -> Result<()> {
    let mut open: Option<OpenShard<'_>> = None;
    while let Some(job) = shared.queue.next() {
        let byte_len = job.destination.len() as u64;
        let shard = match open.take() {
            Some(shard) if shard.shard == job.shard => shard,
            other => {
                other.map_or(Ok(()), OpenShard::close)?;
                shared.files.open(job.shard).map_err(|error| about(shared.index, &job, error))?
            }
        };
        read(shared.index, &shard, job)?;
        shared.meter.add(byte_len);
        open = Some(shard);
    }
    open.map_or(Ok(()), OpenShard::close)
}

/// Fills the destination of a job.
fn read(index: &Index, shard: &OpenShard<'_>, job: Job<'_>) -> Result<()> {
    let (start, end) = (job.file_range.start, job.file_range.end);
    let _span = trace_span!("request", shard = job.shard, start, end).entered();
    let read = shard.get()?.read_exact_at(job.destination, start);
    read.map_err(|error| index.with_tensor(error, job.shard, job.file_range).into())
}

/// Names the first tensor of a job in the error that kept it from being read.
fn about(index: &Index, job: &Job<'_>, error: Error) -> Error {
    match error {
        Error::File(error) => index.with_tensor(error, job.shard, job.file_range.clone()).into(),
        other => other,
    }
}
