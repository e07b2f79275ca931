//! The workers of a load: one for each processor, and more while reads wait for a disk.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::queue::Queue;
use super::sync::{self, AtomicUsize, Ordering, Scope};
use crate::{ErrorKind, Result};

/// The workers of a load, which come and go.
#[derive(Debug)]
pub(super) struct Crew {
    /// More than these only get in each other's way while they copy.
    copying: usize,
    /// Most workers at a time.
    waiting: usize,
    at_work: AtomicUsize,
    /// Most that have been at work at a time.
    peak: AtomicUsize,
    /// All that have been started.
    started: AtomicUsize,
}

/// What a crew does with jobs.
pub(super) trait Work<J>: Sync {
    /// A worker, with what it needs for itself. It calls `before_waiting` before each read that
    /// waits for a disk.
    fn worker<'w>(&'w self, before_waiting: &'w dyn Fn()) -> impl Worker<J> + 'w;
}

/// One thread of a crew.
pub(super) trait Worker<J> {
    /// Ends what earlier jobs have left open and this one has no use for.
    fn turn_to(&mut self, job: &J) -> Result<()>;

    /// Does a job.
    fn work(&mut self, job: J) -> Result<()>;

    /// Whether a read has waited since this was last asked.
    fn has_waited(&mut self) -> bool;

    /// Ends what is left open.
    fn finish(self) -> Result<()>;
}

impl Crew {
    /// A crew that begins with `copying` workers, and has up to `waiting` while reads wait.
    pub(super) fn new(copying: usize, waiting: usize) -> Self {
        let [at_work, peak, started] = [copying, copying, 0].map(AtomicUsize::new);
        Self { copying, waiting, at_work, peak, started }
    }

    /// Does the jobs of a queue in threads of its own, all of which have ended when this returns.
    ///
    /// No thread of a pool: a caller's function that runs in one of ours may use a pool itself, and
    /// must not be given other jobs of a load while it waits for that.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Threads`] with the path of the queue if there can be no thread at all; fewer than
    /// were wanted are enough.
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

    /// Most workers that have been at work at a time.
    pub(super) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed).min(self.started.load(Ordering::Relaxed))
    }

    /// Starts a worker that has been counted.
    fn start<'scope, J: Send>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        queue: &'scope Queue<'_, J>,
        work: &'scope impl Work<J>,
    ) -> io::Result<()> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let run = move || {
            let call_for_help = || {
                if self.grow() {
                    // If there can be no more threads these will do.
                    self.start(scope, queue, work).ok();
                }
            };
            let shift = || self.work(queue, work.worker(&call_for_help));
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

    /// Takes jobs until there is none; an error ends the load for all workers.
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

    /// Whether there is a place for one more, which is then taken.
    fn grow(&self) -> bool {
        let grown = self.change(|at_work| (at_work < self.waiting).then_some(at_work + 1));
        if let Ok(before) = grown {
            self.peak.fetch_max(before + 1, Ordering::Relaxed);
        }
        grown.is_ok()
    }

    /// Whether there are more than copy, and the one who asks goes.
    fn shrink(&self) -> bool {
        self.change(|at_work| (at_work > self.copying).then(|| at_work - 1)).is_ok()
    }

    /// Changes the number at work, and returns what it was; an error if it stays.
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
