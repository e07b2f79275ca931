//! The shards that are open while a plan runs: each once, whatever number of threads reads it.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use tensorfile::SourceFile;

use crate::Result;
use crate::index::Index;
use crate::threads::MAX_OPEN_FILES;

/// Opens shards for the workers of one load, at most [`MAX_OPEN_FILES`] at a time.
pub(super) struct OpenShards<'a> {
    index: &'a Index,
    open: Mutex<BTreeMap<usize, Shared>>,
    closed: Condvar,
}

/// A shard that is open, or that the first of its readers is opening.
struct Shared {
    file: Arc<OnceLock<tensorfile::Result<SourceFile>>>,
    readers: usize,
}

impl<'a> OpenShards<'a> {
    pub(super) fn new(index: &'a Index) -> Self {
        Self { index, open: Mutex::default(), closed: Condvar::new() }
    }

    /// Opens a shard, or joins those who have it open; waits while too many others are.
    ///
    /// Whoever waits must hold no shard, or all could wait for each other.
    pub(super) fn open(&self, shard: usize) -> Result<OpenShard<'_>> {
        let mut open = self.lock();
        while open.len() >= MAX_OPEN_FILES && !open.contains_key(&shard) {
            open = self.closed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
        let shared =
            open.entry(shard).or_insert_with(|| Shared { file: Arc::default(), readers: 0 });
        shared.readers += 1;
        let file = Arc::clone(&shared.file);
        drop(open);
        // Not under the lock: on a network it takes its time.
        let opened = OpenShard { shards: self, shard, file };
        opened.get()?;
        Ok(opened)
    }

    /// The state is consistent after every statement, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Shared>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shard that one worker reads; it is closed when its last reader drops it.
pub(super) struct OpenShard<'a> {
    shards: &'a OpenShards<'a>,
    pub(super) shard: usize,
    file: Arc<OnceLock<tensorfile::Result<SourceFile>>>,
}

impl OpenShard<'_> {
    pub(super) fn get(&self) -> Result<&SourceFile> {
        let opened = self.file.get_or_init(|| self.shards.index.open_shard(self.shard));
        Ok(opened.as_ref().map_err(Clone::clone)?)
    }

    /// Makes sure that nothing changed the shard while it was read, and closes it.
    pub(super) fn close(self) -> Result<()> {
        Ok(self.get()?.check_unchanged()?)
    }
}

impl Drop for OpenShard<'_> {
    fn drop(&mut self) {
        let mut open = self.shards.lock();
        if let Some(shared) = open.get_mut(&self.shard) {
            shared.readers -= 1;
            if shared.readers == 0 {
                open.remove(&self.shard);
                self.shards.closed.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OpenShards;
    use crate::ModelDir;
    use crate::threads::MAX_OPEN_FILES;

    #[test]
    fn readers_share_a_file_and_the_last_one_closes_it() {
        let model = ModelDir::open(modeldir_fixtures::model("llama")).unwrap();
        let plan = model.plan();
        let shards = OpenShards::new(&plan.index);
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
        for i in 0..=MAX_OPEN_FILES {
            let of = MAX_OPEN_FILES + 1;
            let path = dir.path().join(modeldir_fixtures::shard_name(i + 1, of));
            let tensor = modeldir_fixtures::Tensor::new(&format!("w{i}"), "U8", &[1], vec![0]);
            std::fs::write(path, modeldir_fixtures::file(&[tensor])).unwrap();
        }
        let plan = ModelDir::open(dir.path()).unwrap().plan();
        let shards = OpenShards::new(&plan.index);
        let mut held: Vec<_> = (0..MAX_OPEN_FILES).map(|i| shards.open(i).unwrap()).collect();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| shards.open(MAX_OPEN_FILES).map(|_| ()));
            assert_eq!(shards.lock().len(), MAX_OPEN_FILES);
            held.pop();
            waiting.join().unwrap().unwrap();
        });
    }
}
