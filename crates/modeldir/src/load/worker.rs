//! One reading thread of a load.

use rayon::Scope;
use tracing::{Span, trace_span};

use super::crew::Crew;
use super::files::{OpenShard, OpenShards};
use super::gather;
use super::job::Job;
use super::progress::Meter;
use super::queue::{Queue, StopOnPanic};
use super::scratch::Scratch;
use crate::index::Index;
use crate::{Error, Result};

/// What the workers of one load share.
pub(super) struct Shared<'a, 'p> {
    pub(super) index: &'a Index,
    pub(super) files: OpenShards<'a>,
    pub(super) queue: Queue<'p>,
    pub(super) crew: Crew,
    pub(super) meter: &'a Meter<'a>,
    /// The span of the load, which other threads have to enter themselves.
    pub(super) span: Span,
}

/// Starts the workers; all have ended when the scope does.
pub(super) fn start<'s>(shared: &'s Shared<'_, '_>, scope: &Scope<'s>) {
    for _ in 0..shared.crew.copying {
        scope.spawn(move |scope| run(shared, scope));
    }
}

/// Takes jobs until there is none; an error ends the load for all workers.
fn run<'s>(shared: &'s Shared<'_, '_>, scope: &Scope<'s>) {
    let _entered = shared.span.enter();
    let _stop_on_panic = StopOnPanic(&shared.queue);
    let call_for_help = || {
        if shared.crew.grow() {
            scope.spawn(move |scope| run(shared, scope));
        }
    };
    let mut scratch = Scratch::new(&call_for_help);
    let mut open: Option<OpenShard<'_>> = None;
    let mut number = 0;
    while let Some(job) = shared.queue.next() {
        let last = std::mem::replace(&mut number, job.number);
        let closed = open.take_if(|open| open.shard != job.shard).map_or(Ok(()), OpenShard::close);
        if let Err(error) = closed {
            return shared.queue.fail(last, error);
        }
        match fill(shared, open.take(), job, &mut scratch) {
            Ok(shard) => open = Some(shard),
            Err(error) => return shared.queue.fail(number, error),
        }
        if !scratch.has_waited() && shared.crew.shrink() {
            break;
        }
    }
    if let Err(error) = open.map_or(Ok(()), OpenShard::close) {
        shared.queue.fail(number, error);
    }
}

/// Does a job, in the shard that is open if there is one; returns the shard.
fn fill<'s>(
    shared: &'s Shared<'_, '_>,
    open: Option<OpenShard<'s>>,
    job: Job<'_>,
    scratch: &mut Scratch<'_>,
) -> Result<OpenShard<'s>> {
    let shard = match open {
        Some(shard) => shard,
        None => shared.files.open(job.shard).map_err(|error| about(shared.index, &job, error))?,
    };
    let bytes_read = read(shared.index, &shard, job, scratch)?;
    shared.meter.add(bytes_read);
    Ok(shard)
}

/// Fills the destination of a job; returns how many bytes were read for it.
fn read(
    index: &Index,
    shard: &OpenShard<'_>,
    job: Job<'_>,
    scratch: &mut Scratch<'_>,
) -> Result<u64> {
    let (start, end) = (job.file_range.start, job.file_range.end);
    let reader = shard.get()?;
    let _span = trace_span!(parent: &reader.span, "request", start, end).entered();
    let len = job.destination.len() as u64;
    let read = match job.rows.as_deref() {
        None => reader.read(job.destination, start, scratch).map(|()| len),
        Some(rows) if rows.is_block => {
            gather::read_block(reader, start, rows, job.destination, scratch).map(|()| end - start)
        }
        Some(rows) => {
            gather::read_rows(reader, start, rows, job.destination, scratch).map(|()| len)
        }
    };
    read.map_err(|error| index.with_tensor(error, job.shard, job.file_range).into())
}

/// Names the first tensor of a job in the error that kept it from being read.
fn about(index: &Index, job: &Job<'_>, error: Error) -> Error {
    match error {
        Error::File(error) => index.with_tensor(error, job.shard, job.file_range.clone()).into(),
        other => other,
    }
}
