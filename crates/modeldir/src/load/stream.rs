//! Loading window by window in bounded memory, for callers that use each tensor and drop it.

use std::collections::BTreeMap;
use std::time::Instant;

use tensorfile::{Buffer, Tensor};

use super::budget::Budget;
use super::cancel::Cancel;
use super::options::LoadOptions;
use super::relay::relay;
use super::run::Run;
use super::stats::LoadStats;
use super::sync::{Receiver, SyncSender};
use super::windows::{WINDOWS, Windows};
use super::{job, memory};
use crate::plan::LoadPlan;
use crate::plan::layout::in_memory;
use crate::{Error, ErrorKind, Result};

impl LoadPlan {
    /// Passes the tensors to `take` in file order, while the next ones are read.
    ///
    /// `take` runs on the calling thread, once for each tensor. Tensors are read in windows, each
    /// at most a quarter of the [memory bound](LoadOptions::max_bytes_in_flight) or a single
    /// tensor; the memory of a window is reused when all its tensors are dropped. `take` may keep a
    /// tensor: then its whole window stays in memory, outside the bound.
    ///
    /// ```
    /// use modeldir::ModelDir;
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// let model = ModelDir::open(path)?;
    /// let mut bytes = 0;
    /// model.plan().stream(|tensor| {
    ///     bytes += tensor.byte_len() as u64; // upload it, convert it, write it
    ///     Ok(())
    /// })?;
    /// assert_eq!(bytes, model.byte_len());
    /// # Ok::<(), modeldir::Error>(())
    /// ```
    ///
    /// [`try_stream`](Self::try_stream) accepts a function with another error type.
    ///
    /// # Errors
    ///
    /// Any error of `take`, which ends the stream. [`ErrorKind::TensorTooLarge`] before anything is
    /// read, for a tensor that needs more memory than the bound. Otherwise as [`load`](Self::load),
    /// after all tensors of earlier windows.
    pub fn stream(&self, take: impl FnMut(Tensor) -> Result<()>) -> Result<LoadStats> {
        self.stream_with(&LoadOptions::default(), take)
    }

    /// Streams as [`stream`](Self::stream) does, with options.
    ///
    /// # Errors
    ///
    /// As [`stream`](Self::stream).
    pub fn stream_with(
        &self,
        options: &LoadOptions,
        take: impl FnMut(Tensor) -> Result<()>,
    ) -> Result<LoadStats> {
        self.try_stream_with(options, take)
    }

    /// Streams as [`stream`](Self::stream) does, for a function with an error type of its own.
    ///
    /// ```
    /// use std::error::Error;
    ///
    /// use modeldir::ModelDir;
    ///
    /// # let path = modeldir_fixtures::model("llama");
    /// # let mut place: Vec<u8> = Vec::new();
    /// let plan = ModelDir::open(path)?.plan();
    /// plan.try_stream(|tensor| -> Result<(), Box<dyn Error>> {
    ///     std::io::Write::write_all(&mut place, tensor.bytes())?;
    ///     Ok(())
    /// })?;
    /// # assert_eq!(place.len() as u64, plan.bytes_selected());
    /// # Ok::<(), Box<dyn Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`stream`](Self::stream).
    pub fn try_stream<E: From<Error>>(
        &self,
        take: impl FnMut(Tensor) -> Result<(), E>,
    ) -> Result<LoadStats, E> {
        self.try_stream_with(&LoadOptions::default(), take)
    }

    /// Streams as [`try_stream`](Self::try_stream) does, with options.
    ///
    /// # Errors
    ///
    /// As [`stream`](Self::stream).
    pub fn try_stream_with<E: From<Error>>(
        &self,
        options: &LoadOptions,
        take: impl FnMut(Tensor) -> Result<(), E>,
    ) -> Result<LoadStats, E> {
        // When `take` returns, it has dropped the tensor or keeps it.
        self.stream_to(options, Taker { take, settle: || Ok(()) })
    }

    /// Streams as [`stream`](Self::stream) does, for a taker that may still use a tensor after
    /// `take` returns.
    pub(crate) fn stream_to<E: From<Error>>(
        &self,
        options: &LoadOptions,
        taker: Taker<impl FnMut(Tensor) -> Result<(), E>, impl FnMut() -> Result<(), E>>,
    ) -> Result<LoadStats, E> {
        let start = Instant::now();
        let windows = Windows::of(self, options.max_bytes_in_flight)?;
        let (budget, stop) =
            (Budget::new(windows.in_flight()), Cancel::child_of(options.cancel.as_ref()));
        let options = LoadOptions { cancel: Some(stop.clone()), ..options.clone() };
        let run = Run::new(self, &options);
        let region_len = windows.region_len();
        run.check_memory(self, windows.memory_bytes(region_len))?;
        let loader = Loader { windows, region_len, budget: &budget, run: &run };
        // When the taker ends, also by a panic, the loader must not wait for memory or for a window
        // to be taken.
        let stop_loading = || {
            stop.cancel();
            budget.stop();
        };
        let stats = relay(
            &self.index.root,
            in_memory(WINDOWS),
            stop_loading,
            |sender| loader.load(sender),
            |windows| self.take_all(windows, &budget, &stop, taker),
        )?;
        run.meter.finish();
        Ok(LoadStats { elapsed: start.elapsed(), ..stats })
    }

    /// Passes the tensors of the windows to the taker as they arrive, and gives their memory back.
    fn take_all<E: From<Error>>(
        &self,
        windows: Receiver<Window>,
        budget: &Budget,
        stop: &Cancel,
        mut taker: Taker<impl FnMut(Tensor) -> Result<(), E>, impl FnMut() -> Result<(), E>>,
    ) -> Result<(), E> {
        let mut left = self.len();
        for window in windows {
            left = left.saturating_sub(window.tensors.len());
            for tensor in window.tensors {
                if stop.is_cancelled() {
                    return Err(ErrorKind::Cancelled.at(&self.index.root).into());
                }
                (taker.take)(tensor)?;
            }
            // No window needs the memory of the last one.
            if left > 0 {
                (taker.settle)()?;
            }
            budget.give_back(window.buffer);
        }
        Ok(())
    }
}

/// The receiving side of a stream.
pub(crate) struct Taker<T, S> {
    /// Called with each tensor.
    pub(crate) take: T,
    /// Called before the memory of the tensors taken so far is reused; returns when the taker no
    /// longer uses them.
    pub(crate) settle: S,
}

/// Tensors that a stream reads together.
struct Window {
    /// In file order.
    tensors: Vec<Tensor>,
    /// The memory that they share.
    buffer: Buffer,
}

/// Fills windows, each when there is memory for it.
struct Loader<'a> {
    windows: Windows<'a>,
    /// The least length of a region.
    region_len: usize,
    budget: &'a Budget,
    run: &'a Run<'a>,
}

impl Loader<'_> {
    fn load(self, sender: &SyncSender<Window>) -> Result<LoadStats> {
        let mut stats = LoadStats::default();
        for window in self.windows.plans() {
            let Some(window) = self.fill(&window, &mut stats)? else { break };
            if sender.send(window).is_err() {
                break;
            }
        }
        Ok(stats)
    }

    /// Reads a window, or returns `None` if the taker has ended.
    fn fill(&self, plan: &LoadPlan, stats: &mut LoadStats) -> Result<Option<Window>> {
        // A window is of one shard, and none is empty.
        let Some(first) = plan.in_file_order().next() else { return Ok(None) };
        let shard = first.stored().shard().id();
        let path = plan.index.shard_path(shard);
        let len = in_memory(plan.memory_bytes()).max(self.region_len);
        let Some(region) = self.budget.take(&path, len)? else { return Ok(None) };
        let mut regions = BTreeMap::from([(shard, region)]);
        let jobs = job::of_plan(plan, &mut regions);
        stats.add(&self.run.run(plan, jobs)?);
        let buffers = memory::freeze(regions);
        let tensors = memory::tensors(plan, plan.in_file_order(), &buffers)?;
        let buffer = buffers.into_values().next().unwrap_or_else(|| Buffer::from_vec(Vec::new()));
        Ok(Some(Window { tensors, buffer }))
    }
}
