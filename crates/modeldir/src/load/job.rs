//! Requests and the memory that they fill.

use std::ops::Range;
use std::sync::Arc;

use tensorfile::FloatCast;

use super::memory::{Regions, in_memory};
use crate::index::ShardId;
use crate::plan::LoadPlan;
use crate::request::{Request, RowCut};

/// One request and the memory that it fills.
#[derive(Debug)]
pub(super) struct Job<'p> {
    pub(super) shard: ShardId,
    pub(super) file_range: Range<u64>,
    /// What is wanted of the bytes, if not all.
    pub(super) rows: Option<Arc<RowCut>>,
    /// How the elements are converted, if they are.
    pub(super) cast: Option<FloatCast>,
    pub(super) destination: &'p mut [u8],
}

/// Gives every request of a plan its part of the region of its shard.
pub(super) fn of_plan<'p>(plan: &LoadPlan, regions: &'p mut Regions) -> Vec<Job<'p>> {
    let mut jobs = Vec::with_capacity(plan.requests().len());
    let mut requests = plan.requests().iter().peekable();
    for (&shard, region) in regions {
        let of_shard = std::iter::from_fn(|| requests.next_if(|request| request.shard == shard));
        fill(&mut jobs, of_shard, 0, region.as_mut_slice());
    }
    jobs
}

/// Adds a job for each of these requests, which are in the order of their memory and do not
/// overlap; `memory` starts at position `memory_start` of theirs.
pub(super) fn fill<'r, 'p>(
    jobs: &mut Vec<Job<'p>>,
    requests: impl IntoIterator<Item = &'r Request>,
    memory_start: u64,
    memory: &'p mut [u8],
) {
    let (mut rest, mut rest_offset) = (memory, memory_start);
    for request in requests {
        let skip = in_memory(request.memory_offset - rest_offset);
        let (_, tail) = rest.split_at_mut(skip);
        let (destination, tail) = tail.split_at_mut(in_memory(request.memory_len()));
        rest_offset = request.memory_offset + request.memory_len();
        rest = tail;
        let (shard, cast) = (request.shard, request.cast);
        let (file_range, rows) = (request.file_range.clone(), request.rows.clone());
        jobs.push(Job { shard, file_range, rows, cast, destination });
    }
}
