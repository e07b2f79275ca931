//! How many threads work, and the pool they work in: made for one call, gone after it.

use std::num::NonZeroUsize;

use crate::{Error, Result};

/// Most files that one call has open at a time: a process may have 256, or even 64.
pub(crate) const MAX_OPEN_FILES: usize = 32;

/// Most threads that are started unasked: memory is no faster for more.
const MAX_DEFAULT: usize = 16;

/// The number of threads for this many pieces of work: as asked, or one for each processor that
/// this process may use (affinity and cgroup quota counted), and never more than pieces.
pub(crate) fn count(asked: Option<NonZeroUsize>, pieces: usize) -> usize {
    let default = || {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        processors.min(MAX_DEFAULT)
    };
    asked.map_or_else(default, NonZeroUsize::get).min(pieces).max(1)
}

/// A pool of this many threads, which end when it is dropped.
pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("modeldir-{i}"))
        .build()
        .map_err(|error| Error::Threads { threads, message: error.to_string().into() })
}
