//! How a plan is to be run.

use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;

use super::available::MemoryCheck;
use super::cancel::Cancel;
use super::progress::Progress;

/// How to run a plan, whatever way it is loaded. Every field can be left at its default.
///
/// ```
/// use std::sync::Arc;
///
/// use modeldir::{LoadOptions, ModelDir, Progress};
///
/// # let path = modeldir_fixtures::model("llama");
/// let show = |progress: Progress| {
///     println!("{} of {} bytes", progress.bytes_done, progress.bytes_total);
/// };
/// let options = LoadOptions { progress: Some(Arc::new(show)), ..Default::default() };
/// let store = ModelDir::open(path)?.plan().load_with(&options)?;
/// # assert_eq!(store.len(), 30);
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct LoadOptions {
    /// Threads that read. By default one for each processor that this process may use, at most 16,
    /// and at least 8 where reads may have to wait for a disk. Raise it for storage that answers
    /// late (a network file system); lower it if other work needs the processors.
    pub threads: Option<NonZeroUsize>,
    /// Whether reads go through the page cache. Use [`Io::Buffered`] if the files are read again soon.
    pub io: Io,
    /// Called as bytes arrive, by one thread at a time and at most about thirty times a second, and
    /// once more when the last byte is there. The bytes done never become fewer from call to call.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// Ends the load early when it is set, with
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    pub cancel: Option<Cancel>,
    /// Whether to make sure that there is memory before any is allocated. To change where a process
    /// that the system ends costs more than an error.
    pub memory_check: MemoryCheck,
    /// For streams alone: the most bytes of memory for tensors that are being read or wait to be
    /// taken. By default 512 MiB, or what the longest tensor needs. More lets reading run further
    /// ahead of a caller who takes tensors unevenly; less saves memory, down to the longest tensor.
    pub max_bytes_in_flight: Option<NonZeroU64>,
}

impl fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadOptions")
            .field("threads", &self.threads)
            .field("io", &self.io)
            .field("progress", &self.progress.as_ref().map(|_| "Fn(Progress)"))
            .field("cancel", &self.cancel)
            .field("memory_check", &self.memory_check)
            .field("max_bytes_in_flight", &self.max_bytes_in_flight)
            .finish()
    }
}

/// Whether bytes are read through the operating system's page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Io {
    /// What is in the page cache is copied from there; what is not is read past it, straight into
    /// its place, and leaves the cache as it was. On a network file system all goes through the
    /// cache.
    #[default]
    Auto,
    /// Everything goes through the page cache and stays there as long as the system has room.
    /// For a model that is loaded again soon, or by several processes of this machine at once:
    /// only the first read waits for the disk.
    Buffered,
    /// Everything is read past the page cache, where the file system can do that. For a model
    /// that nobody reads again, beside programs that need the cache.
    Direct,
}
