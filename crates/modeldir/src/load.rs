//! Runs a plan: every byte of its tensors is read into owned memory.

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
    /// Blocks until every byte is in memory. Threads divide the work by requests, so a single large
    /// shard or tensor uses all of them. Bytes in the page cache are copied from there; other bytes
    /// bypass it and are read directly to their place ([`LoadOptions::io`] can change this). A
    /// shard is opened once for cached and once for direct reads. At most 32 files are open at a
    /// time, or fewer if the process may not open so many. The tensors of one shard share one
    /// region of memory, which is freed when the last of them is dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::File`](crate::ErrorKind::File) if a shard cannot be read, has changed since the
    /// model was opened, or its memory cannot be allocated;
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) if [`LoadOptions::cancel`] was set
    /// before all was read; [`ErrorKind::NotEnoughMemory`](crate::ErrorKind::NotEnoughMemory),
    /// before anything is allocated, if [`LoadOptions::memory_check`] is on and finds too little;
    /// [`ErrorKind::Threads`](crate::ErrorKind::Threads) if no thread can be started. When an error
    /// is returned, no thread is reading.
    ///
    /// # Panics
    ///
    /// If [`LoadOptions::progress`] panics: its panic continues here once all threads have ended.
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

    /// Loads as [`load`](Self::load) does, into the memory of an earlier store where its regions
    /// fit. Regions that do not fit are freed first. Reused regions may exceed what is needed by at
    /// most 32 MiB in total.
    ///
    /// Reused memory costs no page faults and is not zeroed.
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
    /// As [`load`](Self::load); the memory is freed then.
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
        let store = TensorStore::new(&self.index, tensors, stats);
        Ok(store.with_origin(self.has_cast(), self.part_record.clone()))
    }
}

#[cfg(test)]
mod tests;
