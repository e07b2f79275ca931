//! The requests of a load, handed out one by one in file order, and the first error that ended it.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::Result;

/// One request and the memory that it fills.
#[derive(Debug)]
pub(super) struct Job<'p> {
    pub(super) shard: usize,
    pub(super) file_range: Range<u64>,
    pub(super) destination: &'p mut [u8],
}

/// What is left to do, shared by the workers.
#[derive(Debug)]
pub(super) struct Queue<'p> {
    state: Mutex<State<'p>>,
}

#[derive(Debug)]
struct State<'p> {
    jobs: std::vec::IntoIter<Job<'p>>,
    result: Result<()>,
}

impl<'p> Queue<'p> {
    pub(super) fn new(jobs: Vec<Job<'p>>) -> Self {
        Self { state: Mutex::new(State { jobs: jobs.into_iter(), result: Ok(()) }) }
    }

    /// The next job, or `None` when there is none or the load has ended.
    pub(super) fn next(&self) -> Option<Job<'p>> {
        self.lock().jobs.next()
    }

    /// Ends the load: no more jobs are handed out. The first error is kept.
    pub(super) fn stop(&self, result: Result<()>) {
        let mut state = self.lock();
        state.jobs = Vec::new().into_iter();
        if state.result.is_ok() {
            state.result = result;
        }
    }

    /// How the load ended.
    pub(super) fn into_result(self) -> Result<()> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).result
    }

    /// The state is consistent after every statement, so a panic elsewhere does not spoil it.
    fn lock(&self) -> std::sync::MutexGuard<'_, State<'p>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops the queue if it is dropped by a panic, so that the other workers end as well.
#[derive(Debug)]
pub(super) struct StopOnPanic<'q, 'p>(pub(super) &'q Queue<'p>);

impl Drop for StopOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(Ok(()));
        }
    }
}
