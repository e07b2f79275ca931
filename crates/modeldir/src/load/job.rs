//! Requests and the memory that they fill.

use super::memory::Regions;
use crate::plan::LoadPlan;
use crate::plan::layout::in_memory;
use crate::plan::request::Request;

/// One request and the memory that it fills.
#[derive(Debug)]
pub(super) struct Job<'p> {
    pub(super) request: &'p Request,
    pub(super) place: &'p mut [u8],
}

/// Pairs every request of a plan with its part of its shard's region.
pub(super) fn of_plan<'p>(plan: &'p LoadPlan, regions: &'p mut Regions) -> Vec<Job<'p>> {
    let mut jobs = Vec::with_capacity(plan.requests().len());
    let mut requests = plan.requests().iter().peekable();
    for (&shard, region) in regions {
        let of_shard = std::iter::from_fn(|| requests.next_if(|request| request.shard == shard));
        fill(&mut jobs, of_shard, 0, region.as_mut_slice());
    }
    jobs
}

/// Adds a job for each request. Requests are in the order of their memory and do not overlap;
/// `memory` starts at `memory_start` in their coordinates.
pub(super) fn fill<'p>(
    jobs: &mut Vec<Job<'p>>,
    requests: impl IntoIterator<Item = &'p Request>,
    memory_start: u64,
    memory: &'p mut [u8],
) {
    let (mut rest, mut rest_start) = (memory, memory_start);
    for request in requests {
        let skip = in_memory(request.memory_range.start - rest_start);
        let (_, tail) = rest.split_at_mut(skip);
        let (place, tail) = tail.split_at_mut(in_memory(request.memory_bytes()));
        (rest, rest_start) = (tail, request.memory_range.end);
        jobs.push(Job { request, place });
    }
}
