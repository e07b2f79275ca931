//! One reading thread of a load.

use std::ops::Range;

use tracing::span::EnteredSpan;
use tracing::{Span, trace_span};

use super::crew::{Work, Worker};
use super::files::{OpenShard, OpenShards};
use super::fill::fill;
use super::job::Job;
use super::progress::Meter;
use super::scratch::Scratch;
use super::shards::ShardOpener;
use crate::Result;
use crate::weights::index::Index;

/// What the workers of one load share.
pub(super) struct Context<'a> {
    pub(super) index: &'a Index,
    pub(super) files: OpenShards<ShardOpener<'a>>,
    pub(super) meter: &'a Meter<'a>,
    /// The span of the load, which each thread enters.
    pub(super) span: Span,
}

impl<'p> Work<Job<'p>> for Context<'_> {
    fn worker<'w>(&'w self, before_waiting: &'w dyn Fn()) -> impl Worker<Job<'p>> + 'w {
        let scratch = Scratch::new(before_waiting);
        ReadWorker { context: self, scratch, open: None, _entered: self.span.clone().entered() }
    }
}

/// A worker, with the shard that it has open.
struct ReadWorker<'w, 'a> {
    context: &'w Context<'a>,
    scratch: Scratch<'w>,
    open: Option<OpenShard<'w, ShardOpener<'a>>>,
    _entered: EnteredSpan,
}

impl Worker<Job<'_>> for ReadWorker<'_, '_> {
    /// Closes the open shard if the job reads another one: opening requires that none is held.
    fn turn_to(&mut self, job: &Job<'_>) -> Result<()> {
        self.open.take_if(|open| open.shard != job.request.shard).map_or(Ok(()), OpenShard::close)
    }

    fn work(&mut self, job: Job<'_>) -> Result<()> {
        let index = self.context.index;
        let shard = match self.open.take() {
            Some(shard) => shard,
            None => {
                let (shard, span) = (job.request.shard, job.request.read.span());
                let opened = self.context.files.open(shard);
                opened.map_err(|error| index.with_tensor(error, shard, span))?
            }
        };
        let shard = self.open.insert(shard);
        let bytes_read = read(index, shard, job, &mut self.scratch)?;
        self.context.meter.add(bytes_read);
        Ok(())
    }

    fn has_waited(&mut self) -> bool {
        self.scratch.has_waited()
    }

    fn finish(self) -> Result<()> {
        self.open.map_or(Ok(()), OpenShard::close)
    }
}

/// Fills the place of a job; returns the number of bytes read.
fn read(
    index: &Index,
    shard: &OpenShard<'_, ShardOpener<'_>>,
    job: Job<'_>,
    scratch: &mut Scratch<'_>,
) -> Result<u64> {
    let (reader, Job { request, place }) = (shard.get(), job);
    let Range { start, end } = request.read.span();
    let _span = trace_span!(parent: &reader.span, "request", start, end).entered();
    fill(reader, &request.read, request.transform, place, scratch)
        .map_err(|error| index.with_tensor(error.into(), request.shard, start..end))?;
    Ok(request.byte_len())
}
