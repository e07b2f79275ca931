//! The number of threads of a call, and the pool they run in, which ends with the call.

use std::num::NonZeroUsize;

use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

use crate::{ErrorKind, Result};

/// The maximum number of files that a call opens simultaneously: some systems allow a process 256,
/// or even 64.
pub(crate) const MAX_OPEN_FILES: usize = 32;

/// The default maximum of threads: more do not make memory faster.
const MAX_DEFAULT: usize = 16;

/// The number of threads for this many pieces of work: as requested, or one for each processor
/// available to this process (by affinity and cgroup quota), and never more than pieces.
pub(crate) fn count(asked: Option<NonZeroUsize>, pieces: usize) -> usize {
    count_at_least(1, asked, pieces)
}

/// [`count`] for work that mostly waits: at least `least` threads by default.
pub(crate) fn count_at_least(least: usize, asked: Option<NonZeroUsize>, pieces: usize) -> usize {
    let default = || {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        processors.min(MAX_DEFAULT).max(least)
    };
    asked.map_or_else(default, NonZeroUsize::get).min(pieces).max(1)
}

/// Runs work in a pool of this many threads; all have ended on return.
///
/// The caller may itself be a thread of a rayon pool. While such a thread waits for another pool,
/// it runs other jobs of its own pool: any code, nested without bound. So a plain thread enters the
/// new pool, and the caller joins that thread.
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
                        // A thread that runs another of these jobs while it waits would lock twice.
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
