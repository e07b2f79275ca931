//! Loading window by window in bounded memory, for those who hand tensors on and drop them.

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
    /// Hands the tensors over in file order, while the next ones are being read.
    ///
    /// `take` is called by the calling thread, tensor after tensor. Tensors lie together in windows
    /// of a quarter of the memory at most; that of a window is used again once all its tensors
    /// are dropped. A tensor that `take` keeps is the caller's from then on: its window stays in
    /// memory and is no longer counted.
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
    /// A function with errors of its own goes to [`try_stream`](Self::try_stream).
    ///
    /// # Errors
    ///
    /// What `take` returns, which ends the stream. [`ErrorKind::TensorTooLarge`] before anything is
    /// read, for a tensor that needs more memory than may be used. Otherwise as
    /// [`load`](Self::load), after all tensors of the windows before.
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
        // What has been taken is the taker's or dropped.
        self.stream_to(options, Taker { take, settle: || Ok(()) })
    }

    /// Does what [`stream`](Self::stream) does for a taker that may not have done with a tensor when
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
        // However the taking ends, by a panic too, the loader must not wait for it: neither for
        // memory nor for somebody to take a window.
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

    /// Hands over the tensors of the windows as they come; whoever sends them is not held up after.
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
            // Nobody waits for the memory of the last one.
            if left > 0 {
                (taker.settle)()?;
            }
            budget.give_back(window.buffer);
        }
        Ok(())
    }
}

/// Who is handed the tensors of a stream.
pub(crate) struct Taker<T, S> {
    /// Called with each tensor.
    pub(crate) take: T,
    /// Called before the memory of the tensors taken so far is used again; returns when the taker
    /// has done with them.
    pub(crate) settle: S,
}

/// What a stream reads at a time.
struct Window {
    /// In file order.
    tensors: Vec<Tensor>,
    /// The memory that they share.
    buffer: Buffer,
}

/// Fills windows as long as there is memory for them.
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

    /// Reads a window, or returns `None` if nobody takes tensors any more.
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
