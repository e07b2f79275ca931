//! The workers of a load: one for each processor, and more while reads wait for a disk.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::queue::Queue;
use super::sync::{self, AtomicUsize, Ordering, Scope};
use crate::{ErrorKind, Result};

/// The workers of a load; their number changes while it runs.
#[derive(Debug)]
pub(super) struct Crew {
    /// Workers while bytes are copied from memory: more would only contend.
    copying: usize,
    /// Most workers at a time.
    waiting: usize,
    at_work: AtomicUsize,
    /// The most workers that ran at the same time.
    peak: AtomicUsize,
    /// Number of workers started.
    started: AtomicUsize,
}

/// What a crew does with jobs.
pub(super) trait Work<J>: Sync {
    /// Makes a worker with its own state. The worker calls `before_waiting` before each read that
    /// waits for a disk.
    fn worker<'w>(&'w self, before_waiting: &'w dyn Fn()) -> impl Worker<J> + 'w;
}

/// One thread of a crew.
pub(super) trait Worker<J> {
    /// Closes the shard kept open from the previous job if `job` reads another one.
    fn turn_to(&mut self, job: &J) -> Result<()>;

    /// Runs a job.
    fn work(&mut self, job: J) -> Result<()>;

    /// Whether a read has waited since the last call.
    fn has_waited(&mut self) -> bool;

    /// Closes what is open.
    fn finish(self) -> Result<()>;
}

impl Crew {
    /// A crew that starts with `copying` workers and grows to `waiting` while reads wait.
    pub(super) fn new(copying: usize, waiting: usize) -> Self {
        let [at_work, peak, started] = [copying, copying, 0].map(AtomicUsize::new);
        Self { copying, waiting, at_work, peak, started }
    }

    /// Runs the jobs of a queue in threads of its own, all of which have ended when this returns.
    ///
    /// The threads belong to no pool: a caller's progress function may use a pool of its own, and
    /// while it waits there it must not be handed another job of the load. Threads of a shared pool
    /// were tried and rejected for that reason.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Threads`] with the path of the queue if no thread can be started; fewer threads
    /// than wanted are enough.
    pub(super) fn run<J: Send>(&self, queue: &Queue<'_, J>, work: &impl Work<J>) -> Result<()> {
        sync::scope(|scope| {
            let starts = (0..self.copying).map(|_| self.start(scope, queue, work));
            let (started, failed): (Vec<_>, Vec<_>) = starts.partition(io::Result::is_ok);
            match failed.into_iter().find_map(io::Result::err) {
                Some(error) if started.is_empty() => {
                    let message = error.to_string().into();
                    Err(ErrorKind::Threads { threads: self.copying, message }.at(queue.root()))
                }
                _ => Ok(()),
            }
        })
    }

    /// The most workers that ran at the same time.
    pub(super) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed).min(self.started.load(Ordering::Relaxed))
    }

    /// Starts a worker that is already counted.
    fn start<'scope, J: Send>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        queue: &'scope Queue<'_, J>,
        work: &'scope impl Work<J>,
    ) -> io::Result<()> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let run = move || {
            let add_worker = || {
                if self.grow() {
                    // Without more threads, the running ones do the work.
                    self.start(scope, queue, work).ok();
                }
            };
            let shift = || self.work(queue, work.worker(&add_worker));
            if let Err(panic) = catch_unwind(AssertUnwindSafe(shift)) {
                queue.panicked(panic);
            }
        };
        let started = sync::spawn(scope, format!("modeldir-{number}"), run);
        if started.is_err() {
            self.started.fetch_sub(1, Ordering::Relaxed);
            self.at_work.fetch_sub(1, Ordering::Relaxed);
        }
        started
    }

    /// Runs jobs until none is left; an error ends the load for all workers.
    fn work<J>(&self, queue: &Queue<'_, J>, mut worker: impl Worker<J>) {
        let mut last = 0;
        while let Some((number, job)) = queue.next() {
            if let Err(error) = worker.turn_to(&job) {
                return queue.fail(last, error);
            }
            last = number;
            if let Err(error) = worker.work(job) {
                return queue.fail(number, error);
            }
            if !worker.has_waited() && self.shrink() {
                break;
            }
        }
        if let Err(error) = worker.finish() {
            queue.fail(last, error);
        }
    }

    /// Reserves a place for one more worker, if there is one.
    fn grow(&self) -> bool {
        let grown = self.change(|at_work| (at_work < self.waiting).then_some(at_work + 1));
        if let Ok(before) = grown {
            self.peak.fetch_max(before + 1, Ordering::Relaxed);
        }
        grown.is_ok()
    }

    /// Whether the calling worker must end, because more run than may copy.
    fn shrink(&self) -> bool {
        self.change(|at_work| (at_work > self.copying).then(|| at_work - 1)).is_ok()
    }

    /// Changes the number of running workers and returns the former one; an error if it stays.
    fn change(&self, to: impl Fn(usize) -> Option<usize>) -> Result<usize, usize> {
        self.at_work.fetch_update(Ordering::Relaxed, Ordering::Relaxed, to)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sync::check;
    use super::Crew;

    #[test]
    fn it_grows_and_shrinks_within_its_bounds() {
        check(|| {
            let crew = Crew::new(2, 4);
            let grown = [crew.grow(), crew.grow(), crew.grow()];
            let shrunk = [crew.shrink(), crew.shrink(), crew.shrink()];
            assert_eq!((grown, shrunk), ([true, true, false], [true, true, false]));
        });
    }
}
