//! The options of a load.

use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;

use super::available::MemoryCheck;
use super::cancel::Cancel;
use super::progress::Progress;

/// Options of a load, the same for every way of loading. Every field has a default. Mapping has
/// [`MapOptions`](crate::MapOptions) instead.
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
    /// Number of threads that read. The default is the number of processors available to this
    /// process, at most 16, and at least 8 if reads may wait for a disk. Raise it for storage with
    /// high latency (a network file system); lower it if other work needs the processors.
    pub threads: Option<NonZeroUsize>,
    /// Whether reads go through the page cache. Use [`Io::Buffered`] if the files are read again
    /// soon.
    pub io: Io,
    /// Called as bytes arrive, by one thread at a time and at most about 30 times a second, and
    /// once more after the last byte. `bytes_done` never decreases from call to call.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// A flag that ends the load early, with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    pub cancel: Option<Cancel>,
    /// Whether to compare the memory needed with the memory available before any is allocated. Turn
    /// it on if an error is better than a process killed for want of memory.
    pub memory_check: MemoryCheck,
    /// Streams only: the most bytes of memory for tensors that are being read, wait for the caller
    /// or are in use by it. The default is 512 MiB, or what the longest tensor needs if that is
    /// more. Raise it if the caller takes tensors at an uneven pace; lower it to save memory, but
    /// not below what the longest tensor needs.
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

/// Whether reads go through the page cache of the operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Io {
    /// Bytes in the page cache are copied from there. Other bytes bypass the cache: they are read
    /// directly to their place, and the cache stays unchanged. On a network file system all reads
    /// go through the cache.
    #[default]
    Auto,
    /// All reads go through the page cache, where bytes stay while the system has room for them.
    /// Use it for a model that is loaded again soon, or by several processes of one machine: only
    /// the first read waits for the disk.
    Buffered,
    /// All reads bypass the page cache if the file system allows it. Use it for a model that is not
    /// read again soon, on a machine where other programs need the cache.
    Direct,
}
