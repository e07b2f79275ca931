//! The shards that are open while a plan runs: each once, whatever number of threads reads it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use tensorfile::PathText;
use tracing::field::Empty;
use tracing::{Span, debug_span};

use super::options::Io;
use super::reader::ShardReader;
use super::stats::Counters;
use crate::Result;
use crate::index::Index;
use crate::threads::MAX_OPEN_FILES;

/// Most shards that are open at a time: each may be open once more for direct reads.
const MAX_OPEN_SHARDS: usize = MAX_OPEN_FILES / 2;

/// Opens shards for the workers of one load, at most [`MAX_OPEN_SHARDS`] at a time.
pub(super) struct OpenShards<'a> {
    index: &'a Index,
    io: Io,
    /// The span of the load, around those of its shards.
    span: Span,
    open: Mutex<BTreeMap<usize, Shared>>,
    closed: Condvar,
    /// How many that were open have been closed; it changes under the lock.
    num_closed: AtomicUsize,
    /// What was read from the shards that are closed.
    counters: Counters,
}

/// A shard that is open, or that the first of its readers is opening.
struct Shared {
    file: Arc<Opened>,
    readers: usize,
}

/// A shard as the first of its readers opened it, or why it could not.
struct Opened {
    reader: OnceLock<tensorfile::Result<ShardReader>>,
    since: Instant,
}

impl<'a> OpenShards<'a> {
    pub(super) fn new(index: &'a Index, io: Io, span: Span) -> Self {
        let (open, closed, counters) = (Mutex::default(), Condvar::new(), Counters::default());
        let num_closed = AtomicUsize::new(0);
        Self { index, io, span, open, closed, num_closed, counters }
    }

    /// Opens a shard, or joins those who have it open; waits while too many others are, or while
    /// the process may open no more files and others will be closed.
    ///
    /// Whoever waits must hold no shard, or all could wait for each other.
    pub(super) fn open(&self, shard: usize) -> Result<OpenShard<'_>> {
        loop {
            let before = self.num_closed.load(Ordering::Relaxed);
            let opened = self.join(shard);
            match opened.file.reader.get_or_init(|| self.read(shard)) {
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

    /// Counts one reader more of a shard, which may still have to be opened.
    fn join(&self, shard: usize) -> OpenShard<'_> {
        let mut open = self.lock();
        while open.len() >= MAX_OPEN_SHARDS && !open.contains_key(&shard) {
            open = self.closed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
        let opening = || Opened { reader: OnceLock::new(), since: Instant::now() };
        let new = || Shared { file: Arc::new(opening()), readers: 0 };
        let shared = open.entry(shard).or_insert_with(new);
        shared.readers += 1;
        // It is opened later, not under the lock: on a network it takes its time.
        OpenShard { shards: self, shard, file: Arc::clone(&shared.file) }
    }

    /// Waits until more shards have been closed than before; false if none is open that could be.
    fn wait_for_a_close(&self, before: usize) -> bool {
        let mut open = self.lock();
        let is_open = |shared: &Shared| matches!(shared.file.reader.get(), Some(Ok(_)));
        while self.num_closed.load(Ordering::Relaxed) == before {
            if !open.values().any(is_open) {
                return false;
            }
            open = self.closed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// What was read, by the way it came; every shard is closed.
    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The state is consistent after every statement, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Shared>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, shard: usize) -> tensorfile::Result<ShardReader> {
        let file = self.index.open_shard(shard)?;
        let span = debug_span!(
            parent: &self.span,
            "shard",
            path = %PathText(self.index.shards[shard].path()),
            direct = Empty,
            buffered = Empty,
            gathered = Empty,
            seconds = Empty,
            gib_s = Empty,
        );
        Ok(ShardReader::new(file, self.io, span))
    }
}

/// A shard that one worker reads; it is closed when its last reader drops it.
pub(super) struct OpenShard<'a> {
    shards: &'a OpenShards<'a>,
    pub(super) shard: usize,
    file: Arc<Opened>,
}

impl OpenShard<'_> {
    pub(super) fn get(&self) -> Result<&ShardReader> {
        let opened = self.file.reader.get_or_init(|| self.shards.read(self.shard));
        Ok(opened.as_ref().map_err(Clone::clone)?)
    }

    /// Lets nobody else join a shard that could not be opened.
    fn abandon(self) {
        let mut open = self.shards.lock();
        if open.get(&self.shard).is_some_and(|shared| Arc::ptr_eq(&shared.file, &self.file)) {
            open.remove(&self.shard);
            self.shards.closed.notify_all();
        }
    }

    /// Makes sure that nothing changed the shard while it was read, and closes it.
    pub(super) fn close(self) -> Result<()> {
        let unchanged = self.get()?.file().check_unchanged();
        // If it is shorter now, it has lost some tensor; otherwise none in particular.
        Ok(unchanged.map_err(|error| self.shards.index.with_tensor(error, self.shard, 0..0))?)
    }
}

impl Drop for OpenShard<'_> {
    fn drop(&mut self) {
        let mut open = self.shards.lock();
        let shared = open.get_mut(&self.shard);
        if let Some(shared) = shared.filter(|shared| Arc::ptr_eq(&shared.file, &self.file)) {
            shared.readers -= 1;
            if shared.readers == 0 {
                open.remove(&self.shard);
                if matches!(self.file.reader.get(), Some(Ok(_))) {
                    self.shards.num_closed.fetch_add(1, Ordering::Relaxed);
                }
                self.file.tell(&self.shards.counters);
                self.shards.closed.notify_all();
            }
        }
    }
}

impl Opened {
    /// Adds what was read to the counters of the load and to the span of the shard.
    fn tell(&self, of_load: &Counters) {
        if let Some(Ok(reader)) = self.reader.get() {
            of_load.add_all(&reader.counters);
            reader.counters.record(&reader.span, self.since.elapsed());
        }
    }
}

/// Whether the process, or the system, has as many files open as it may.
#[cfg(unix)]
fn is_out_of_files(error: &tensorfile::Error) -> bool {
    use rustix::io::Errno;
    let tensorfile::Error::Io { source, .. } = error else { return false };
    matches!(Errno::from_io_error(source), Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(not(unix))]
fn is_out_of_files(_error: &tensorfile::Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use tracing::Span;

    use super::{Io, MAX_OPEN_SHARDS, OpenShards};
    use crate::ModelDir;

    #[test]
    fn readers_share_a_file_and_the_last_one_closes_it() {
        let model = ModelDir::open(modeldir_fixtures::model("llama")).unwrap();
        let plan = model.plan();
        let shards = OpenShards::new(&plan.index, Io::Auto, Span::none());
        let (first, second) = (shards.open(0).unwrap(), shards.open(0).unwrap());
        assert!(std::ptr::eq(first.get().unwrap(), second.get().unwrap()));
        first.close().unwrap();
        assert_eq!(shards.lock().len(), 1);
        drop(second);
        assert_eq!(shards.lock().len(), 0);
    }

    #[test]
    fn one_file_more_than_may_be_open_waits_for_another_to_close() {
        let dir = tempfile::tempdir().unwrap();
        for i in 0..=MAX_OPEN_SHARDS {
            let of = MAX_OPEN_SHARDS + 1;
            let path = dir.path().join(modeldir_fixtures::shard_name(i + 1, of));
            let tensor = modeldir_fixtures::Tensor::new(&format!("w{i}"), "U8", &[1], vec![0]);
            std::fs::write(path, modeldir_fixtures::file(&[tensor])).unwrap();
        }
        let plan = ModelDir::open(dir.path()).unwrap().plan();
        let shards = OpenShards::new(&plan.index, Io::Auto, Span::none());
        let mut held: Vec<_> = (0..MAX_OPEN_SHARDS).map(|i| shards.open(i).unwrap()).collect();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| shards.open(MAX_OPEN_SHARDS).map(|_| ()));
            assert_eq!(shards.lock().len(), MAX_OPEN_SHARDS);
            held.pop();
            waiting.join().unwrap().unwrap();
        });
    }
}
