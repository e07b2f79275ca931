//! The shards that are open while a plan runs: each once, however many threads read it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering};
use crate::Result;

/// Opens shards and checks them when they are closed. A trait, so that `tests/model` can open
/// shards that are no files; a function per step was rejected, as the steps share the counters.
pub(super) trait Opener: Sync {
    /// Identifies a shard.
    type Shard: Copy + Ord + Send;
    /// An open shard; dropping it closes it.
    type Reader: Send + Sync;

    /// Opens a shard.
    fn open(&self, shard: Self::Shard) -> tensorfile::Result<Self::Reader>;

    /// Fails if a shard has changed while it was read.
    fn check(&self, shard: Self::Shard, reader: &Self::Reader) -> Result<()>;

    /// Called when the last reader closes a shard, with how long it was open.
    fn closed(&self, reader: &Self::Reader, elapsed: Duration);
}

/// Opens shards for the workers of one load, a bounded number at a time.
pub(super) struct OpenShards<O: Opener> {
    opener: O,
    max_open: usize,
    open: Mutex<BTreeMap<O::Shard, Entry<O::Reader>>>,
    closed: Condvar,
    /// Number of shards closed so far; it changes under the lock.
    num_closed: AtomicUsize,
}

/// A shard that is open, or that its first reader is opening.
struct Entry<R> {
    file: Arc<Opening<R>>,
    readers: usize,
}

/// A shard as its first reader opened it, or the error.
struct Opening<R> {
    reader: super::sync::OnceLock<tensorfile::Result<R>>,
    since: Instant,
}

impl<O: Opener> OpenShards<O> {
    pub(super) fn new(opener: O, max_open: usize) -> Self {
        let (open, closed, num_closed) = (Mutex::default(), Condvar::new(), AtomicUsize::new(0));
        Self { opener, max_open, open, closed, num_closed }
    }

    /// Opens a shard, or shares it if it is open. Waits while too many other shards are open, or
    /// while the process is out of files and other shards will be closed.
    ///
    /// The caller must hold no shard, or workers could wait for each other for ever.
    pub(super) fn open(&self, shard: O::Shard) -> Result<OpenShard<'_, O>> {
        loop {
            let before = self.num_closed.load(Ordering::Relaxed);
            let opened = self.join(shard);
            match opened.file().reader.get_or_init(|| self.opener.open(shard)) {
                Err(error) if is_out_of_files(error) => {
                    let error = error.clone();
                    opened.abandon();
                    if !self.wait_for_a_close(before) {
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.clone().into()),
                Ok(_) => return Ok(opened),
            }
        }
    }

    /// The opener; every shard is closed.
    pub(super) fn opener(&self) -> &O {
        &self.opener
    }

    #[cfg(test)]
    pub(super) fn num_open(&self) -> usize {
        self.lock().len()
    }

    /// Counts one more reader of a shard, which may still have to be opened.
    fn join(&self, shard: O::Shard) -> OpenShard<'_, O> {
        let mut open = self.lock();
        while open.len() >= self.max_open && !open.contains_key(&shard) {
            open = self.closed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
        let reader = super::sync::OnceLock::new;
        let opening = || Opening { reader: reader(), since: Instant::now() };
        let new = || Entry { file: Arc::new(opening()), readers: 0 };
        let entry = open.entry(shard).or_insert_with(new);
        entry.readers += 1;
        // It is opened later, without the lock: on a network that can take long.
        OpenShard { shards: self, shard, file: Some(Arc::clone(&entry.file)) }
    }

    /// Waits until another shard is closed; returns false if none is open or being opened.
    fn wait_for_a_close(&self, before: usize) -> bool {
        let mut open = self.lock();
        let has_failed = |entry: &Entry<_>| matches!(entry.file.reader.get(), Some(Err(_)));
        while self.num_closed.load(Ordering::Relaxed) == before {
            if open.values().all(has_failed) {
                return false;
            }
            open = self.closed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// The state is consistent after every statement, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<O::Shard, Entry<O::Reader>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shard in use by one worker; the last one to drop it closes it.
pub(super) struct OpenShard<'a, O: Opener> {
    shards: &'a OpenShards<O>,
    pub(super) shard: O::Shard,
    /// Until it is dropped.
    file: Option<Arc<Opening<O::Reader>>>,
}

impl<O: Opener> OpenShard<'_, O> {
    pub(super) fn get(&self) -> &O::Reader {
        let opened = self.file().reader.get().and_then(|opened| opened.as_ref().ok());
        opened.expect("a shard that could not be opened is not handed out")
    }

    fn file(&self) -> &Arc<Opening<O::Reader>> {
        self.file.as_ref().expect("it is there until the shard is dropped")
    }

    /// Removes a shard that could not be opened, so that no other worker shares it.
    fn abandon(self) {
        let mut open = self.shards.lock();
        if open.get(&self.shard).is_some_and(|entry| Arc::ptr_eq(&entry.file, self.file())) {
            open.remove(&self.shard);
            self.shards.closed.notify_all();
        }
    }

    /// Closes the shard, and fails if it has changed while it was read.
    pub(super) fn close(self) -> Result<()> {
        self.shards.opener.check(self.shard, self.get())
    }
}

impl<O: Opener> Drop for OpenShard<'_, O> {
    /// Counts one reader less; the last one closes the file before it notifies waiting workers.
    fn drop(&mut self) {
        let mut open = self.shards.lock();
        let Some(file) = self.file.take() else { return };
        let entry = open.get_mut(&self.shard);
        let Some(entry) = entry.filter(|entry| Arc::ptr_eq(&entry.file, &file)) else { return };
        entry.readers -= 1;
        if entry.readers > 0 {
            return;
        }
        open.remove(&self.shard);
        let was_open = match file.reader.get() {
            Some(Ok(reader)) => {
                self.shards.opener.closed(reader, file.since.elapsed());
                1
            }
            Some(Err(_)) | None => 0,
        };
        drop(file);
        self.shards.num_closed.fetch_add(was_open, Ordering::Relaxed);
        self.shards.closed.notify_all();
    }
}

/// Whether the error says that the process or the system is out of files.
#[cfg(unix)]
pub(crate) fn is_out_of_files(error: &tensorfile::Error) -> bool {
    use rustix::io::Errno;
    let tensorfile::ErrorKind::Io { source, .. } = error.kind() else { return false };
    matches!(Errno::from_io_error(source), Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(not(unix))]
pub(crate) fn is_out_of_files(_error: &tensorfile::Error) -> bool {
    false
}
