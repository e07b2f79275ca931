//! The jobs of a load, handed out one by one in order, and the error or panic that ended it early.

use std::any::Any;
use std::iter::Enumerate;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::PoisonError;
use std::vec;

use super::cancel::Cancel;
use super::sync::{Mutex, MutexGuard};
use crate::{Error, ErrorKind, Result};

/// The remaining jobs, shared by the workers.
#[derive(Debug)]
pub(super) struct Queue<'p, J> {
    root: &'p Path,
    cancel: Option<&'p Cancel>,
    state: Mutex<State<J>>,
}

#[derive(Debug)]
struct State<J> {
    jobs: Enumerate<vec::IntoIter<J>>,
    /// The error of the first job that failed, by the order of jobs.
    first_error: Option<(usize, Error)>,
    /// The payload of the first panic.
    panic: Option<Box<dyn Any + Send>>,
}

impl<'p, J> Queue<'p, J> {
    pub(super) fn new(jobs: Vec<J>, root: &'p Path, cancel: Option<&'p Cancel>) -> Self {
        let jobs = jobs.into_iter().enumerate();
        let state = Mutex::new(State { jobs, first_error: None, panic: None });
        Self { root, cancel, state }
    }

    /// The model directory, for errors.
    pub(super) fn root(&self) -> &Path {
        self.root
    }

    /// The next job and its number, or `None` when there is none or the load has ended.
    pub(super) fn next(&self) -> Option<(usize, J)> {
        let (number, job) = self.lock().jobs.next()?;
        if self.cancel.is_some_and(Cancel::is_cancelled) {
            self.fail(number, ErrorKind::Cancelled.at(self.root));
            return None;
        }
        Some((number, job))
    }

    /// Ends the load with the error of a job: no more jobs are handed out.
    ///
    /// Every job before this one has been handed out and will be finished. The error of the first
    /// failed job is kept, so the result does not depend on timing.
    pub(super) fn fail(&self, number: usize, error: Error) {
        let mut state = self.lock();
        state.stop();
        if state.first_error.as_ref().is_none_or(|(first, _)| number < *first) {
            state.first_error = Some((number, error));
        }
    }

    /// Ends the load with the panic of a worker, which [`into_result`](Self::into_result) resumes.
    pub(super) fn panicked(&self, panic: Box<dyn Any + Send>) {
        let mut state = self.lock();
        state.stop();
        state.panic.get_or_insert(panic);
    }

    /// How the load ended.
    ///
    /// # Panics
    ///
    /// Resumes the first panic of a worker, whatever errors there are.
    pub(super) fn into_result(self) -> Result<()> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(panic) = state.panic {
            resume_unwind(panic);
        }
        state.first_error.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// The state is consistent after every statement, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J> State<J> {
    fn stop(&mut self) {
        self.jobs = Vec::new().into_iter().enumerate();
    }
}
