//! The requests of a load, handed out one by one in order, and the first error that ended it.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::cancel::Cancel;
use super::job::Job;
use crate::{Error, Result};

/// What is left to do, shared by the workers.
#[derive(Debug)]
pub(super) struct Queue<'p> {
    root: &'p Path,
    cancel: Option<&'p Cancel>,
    state: Mutex<State<'p>>,
}

#[derive(Debug)]
struct State<'p> {
    jobs: std::vec::IntoIter<Job<'p>>,
    /// The error of the first job that failed, by the order of jobs.
    first_error: Option<(usize, Error)>,
}

impl<'p> Queue<'p> {
    pub(super) fn new(jobs: Vec<Job<'p>>, root: &'p Path, cancel: Option<&'p Cancel>) -> Self {
        let state = Mutex::new(State { jobs: jobs.into_iter(), first_error: None });
        Self { root, cancel, state }
    }

    /// The next job, or `None` when there is none or the load has ended.
    pub(super) fn next(&self) -> Option<Job<'p>> {
        let job = self.lock().jobs.next()?;
        if self.cancel.is_some_and(Cancel::is_cancelled) {
            self.fail(job.number, Error::Cancelled { path: self.root.into() });
            return None;
        }
        Some(job)
    }

    /// Ends the load: no more jobs are handed out.
    pub(super) fn stop(&self) {
        self.lock().jobs = Vec::new().into_iter();
    }

    /// Ends the load by the error of a job.
    ///
    /// Jobs are handed out in order, so every job before this one has been, and its worker will
    /// finish it. Of all errors that of the first job is kept: it does not depend on timing.
    pub(super) fn fail(&self, number: usize, error: Error) {
        self.stop();
        let mut state = self.lock();
        if state.first_error.as_ref().is_none_or(|(first, _)| number < *first) {
            state.first_error = Some((number, error));
        }
    }

    /// How the load ended.
    pub(super) fn into_result(self) -> Result<()> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.first_error.map_or(Ok(()), |(_, error)| Err(error))
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
            self.0.stop();
        }
    }
}
