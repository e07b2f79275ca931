//! How many threads work, and the pool they work in: made for one call, gone after it.

use std::num::NonZeroUsize;

use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

use crate::{ErrorKind, Result};

/// Most files that one call has open at a time: a process may have 256, or even 64.
pub(crate) const MAX_OPEN_FILES: usize = 32;

/// Most threads that are started unasked: memory is no faster for more.
const MAX_DEFAULT: usize = 16;

/// The number of threads for this many pieces of work: as asked, or one for each processor that
/// this process may use (affinity and cgroup quota counted), and never more than pieces.
pub(crate) fn count(asked: Option<NonZeroUsize>, pieces: usize) -> usize {
    count_at_least(1, asked, pieces)
}

/// The same for work that mostly waits: unasked, at least this many.
pub(crate) fn count_at_least(least: usize, asked: Option<NonZeroUsize>, pieces: usize) -> usize {
    let default = || {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        processors.min(MAX_DEFAULT).max(least)
    };
    asked.map_or_else(default, NonZeroUsize::get).min(pieces).max(1)
}

/// Runs work in a pool of this many threads, all of which have ended when this returns.
///
/// The caller may itself be a thread of a rayon pool. Such a thread takes other jobs of its own pool
/// while it waits for one of another, which could be any code, and be nested without bound. So a
/// plain thread waits, and the caller waits for that.
pub(crate) fn in_pool<R: Send>(
    threads: usize,
    work: impl FnOnce(&ThreadPool) -> R + Send,
) -> Result<R> {
    let run = || {
        let builder = ThreadPoolBuilder::new().num_threads(threads);
        let named = builder.thread_name(|i| format!("modeldir-{i}"));
        named.build_scoped(ThreadBuilder::run, work)
    };
    let no_threads = |message: String| ErrorKind::Threads { threads, message: message.into() };
    std::thread::scope(|scope| {
        let waiting = std::thread::Builder::new().name("modeldir".into());
        let waiting = waiting.spawn_scoped(scope, run).map_err(|e| no_threads(e.to_string()))?;
        match waiting.join() {
            Ok(done) => Ok(done.map_err(|error| no_threads(error.to_string()))?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::in_pool;
    use crate::ModelDir;

    #[test]
    fn a_caller_in_a_pool_of_its_own_does_no_other_job_meanwhile() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let cache = Mutex::new(0);
        pool.install(|| {
            rayon::scope(|scope| {
                for _ in 0..200 {
                    scope.spawn(|_| {
                        // A thread that took another of these jobs while it waits would lock twice.
                        let mut len = cache.lock().unwrap();
                        *len = ModelDir::open(modeldir_fixtures::model("llama")).unwrap().len();
                    });
                }
            });
        });
        assert_eq!(cache.into_inner().unwrap(), 30);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let work = || in_pool(2, |_| -> () { panic!("in the pool") });
        let panicked = std::panic::catch_unwind(work);
        assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "in the pool");
    }
}
