//! Runs a plan: every byte of its tensors is read and owned when this returns.

#[cfg(any(test, feature = "tokio"))]
mod asked;
mod available;
mod budget;
mod cancel;
mod crew;
mod direct;
mod files;
mod fill;
mod into;
mod job;
mod memory;
mod memory_limit;
mod options;
mod os;
mod progress;
mod queue;
mod reader;
mod relay;
mod residency;
mod run;
mod scratch;
mod shards;
mod stats;
mod storage;
mod stream;
mod sync;
mod way;
mod windows;
mod worker;

use std::time::Instant;

use crate::Result;
use crate::plan::LoadPlan;
use crate::store::TensorStore;

pub use available::MemoryCheck;
pub use cancel::Cancel;
pub use memory::Memory;
pub use memory_limit::MemoryLimit;
pub use options::{Io, LoadOptions};
pub use progress::Progress;
pub use stats::LoadStats;

#[cfg(feature = "tokio")]
pub(crate) use asked::Asked;
#[cfg(feature = "tokio")]
pub(crate) use stream::Taker;

pub(crate) use files::is_out_of_files;

use run::Run;

impl LoadPlan {
    /// Reads the tensors of the plan into memory that the store owns, in parallel.
    ///
    /// Blocks until every byte is there. The work is shared out by requests, so a single large
    /// shard or tensor uses every thread. What the page cache holds is copied from there; the rest
    /// is read past it, straight to its place; [`LoadOptions::io`] can say otherwise. Each shard is
    /// opened once for either way, and at most 32 files are open at a time, or as many as the
    /// process may open.
    /// The tensors of one shard share one region of memory, which is given back when the last of
    /// them is dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::File`](crate::ErrorKind::File) if a shard cannot be read, has changed since the
    /// model was opened, or if there is no memory;
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) if [`LoadOptions::cancel`] was set
    /// before all was read; [`ErrorKind::NotEnoughMemory`](crate::ErrorKind::NotEnoughMemory) before
    /// anything is allocated, if [`LoadOptions::memory_check`] says so;
    /// [`ErrorKind::Threads`](crate::ErrorKind::Threads) if no thread can be started. After an error
    /// no thread reads on.
    ///
    /// # Panics
    ///
    /// Panics as [`LoadOptions::progress`] did, when all threads have ended.
    pub fn load(&self) -> Result<TensorStore> {
        self.load_with(&LoadOptions::default())
    }

    /// Loads as [`load`](Self::load) does, with options.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_with(&self, options: &LoadOptions) -> Result<TensorStore> {
        self.load_reusing_with(Memory::default(), options)
    }

    /// Does what [`load`](Self::load) does in memory that another store has given up, as far as it
    /// fits; the rest of it is given back first. What is too long by more than 32 MiB in all fits
    /// no more.
    ///
    /// Memory that is in use already costs no page faults and need not be zeroed.
    ///
    /// ```
    /// use modeldir::ModelDir;
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// # let next_path = modeldir_fixtures::model("llama");
    /// let store = ModelDir::open(path)?.load()?;
    /// let next = ModelDir::open(next_path)?;
    /// let store = next.plan().load_reusing(store.into_memory())?;
    /// # assert_eq!(store.len(), next.len());
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load); the memory is given back then.
    pub fn load_reusing(&self, memory: Memory) -> Result<TensorStore> {
        self.load_reusing_with(memory, &LoadOptions::default())
    }

    /// Loads as [`load_reusing`](Self::load_reusing) does, with options.
    ///
    /// # Errors
    ///
    /// As [`load_reusing`](Self::load_reusing).
    pub fn load_reusing_with(&self, memory: Memory, options: &LoadOptions) -> Result<TensorStore> {
        let start = Instant::now();
        let run = Run::new(self, options);
        let mut regions = memory::regions(self, memory, |new| run.check_memory(self, new))?;
        let stats = run.run_all(self, job::of_plan(self, &mut regions))?;
        let tensors = memory::tensors(self, self.planned(), &memory::freeze(regions))?;
        let stats = LoadStats { elapsed: start.elapsed(), ..stats };
        Ok(TensorStore::new(&self.index, tensors, stats).with_cast(self.has_cast()))
    }
}

#[cfg(test)]
mod tests;
