//! One reading thread of a load.

use tensorfile::SourceFile;
use tracing::{Span, trace_span};

use super::files::{OpenShard, OpenShards};
use super::progress::Meter;
use super::queue::{Job, Queue, StopOnPanic};
use crate::index::Index;
use crate::layout::RowCut;
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

/// Takes jobs until there is none; an error ends the load for all workers.
pub(super) fn run(shared: &Shared<'_, '_>) {
    let _entered = shared.span.enter();
    let _stop_on_panic = StopOnPanic(&shared.queue);
    let mut open: Option<OpenShard<'_>> = None;
    let mut scratch = Vec::new();
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
    scratch: &mut Vec<u8>,
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
fn read(index: &Index, shard: &OpenShard<'_>, job: Job<'_>, scratch: &mut Vec<u8>) -> Result<u64> {
    let (start, end) = (job.file_range.start, job.file_range.end);
    let _span = trace_span!("request", shard = job.shard, start, end).entered();
    let file = shard.get()?;
    let read = match job.rows {
        None => file.read_exact_at(job.destination, start).map(|()| job.destination.len() as u64),
        Some(rows) if rows.is_block => {
            scratch.resize(in_memory(end - start), 0);
            file.read_exact_at(scratch, start).map(|()| {
                copy_rows(rows, scratch, job.destination);
                end - start
            })
        }
        Some(rows) => read_rows(file, start, rows, job.destination),
    };
    read.map_err(|error| index.with_tensor(error, job.shard, job.file_range).into())
}

/// Copies the wanted runs of each row of a block, one after the other.
fn copy_rows(rows: &RowCut, block: &[u8], mut destination: &mut [u8]) {
    for row in 0..rows.count {
        let row_start = row * rows.stride;
        for run in &rows.runs {
            let run = in_memory(row_start + run.start)..in_memory(row_start + run.end);
            let (filled, rest) = std::mem::take(&mut destination).split_at_mut(run.len());
            filled.copy_from_slice(&block[run]);
            destination = rest;
        }
    }
}

/// Reads the wanted runs of each row by themselves.
fn read_rows(
    file: &SourceFile,
    start: u64,
    rows: &RowCut,
    mut destination: &mut [u8],
) -> tensorfile::Result<u64> {
    let bytes_read = destination.len() as u64;
    for row in 0..rows.count {
        let row_start = start + row * rows.stride;
        for run in &rows.runs {
            let len = in_memory(run.end - run.start);
            let (filled, rest) = std::mem::take(&mut destination).split_at_mut(len);
            file.read_exact_at(filled, row_start + run.start)?;
            destination = rest;
        }
    }
    Ok(bytes_read)
}

/// A length within a block, which the plan keeps short.
fn in_memory(len: u64) -> usize {
    usize::try_from(len).expect("a block is a mebibyte and a row at most")
}

/// Names the first tensor of a job in the error that kept it from being read.
fn about(index: &Index, job: &Job<'_>, error: Error) -> Error {
    match error {
        Error::File(error) => index.with_tensor(error, job.shard, job.file_range.clone()).into(),
        other => other,
    }
}
