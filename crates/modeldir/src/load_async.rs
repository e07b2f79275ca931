//! Loading from async code: the blocking load on a thread that may block; feature `tokio`.

use std::cell::Cell;
use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

use crate::load::{Asked, Cancel, Io, LoadOptions, MemoryCheck, Progress, StreamOptions, Taker};
use crate::plan::LoadPlan;
use crate::store::TensorStore;
use crate::{Error, ErrorKind, Result, Tensor};

/// How to run a plan from async code: [`LoadOptions`] and [`StreamOptions`] that own what they have.
#[derive(Clone, Default)]
pub struct AsyncLoadOptions {
    /// As [`LoadOptions::threads`].
    pub threads: Option<NonZeroUsize>,
    /// As [`LoadOptions::io`].
    pub io: Io,
    /// As [`LoadOptions::progress`]; called by the threads that read.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// As [`LoadOptions::cancel`]. Dropping the future does the same.
    pub cancel: Option<Cancel>,
    /// As [`LoadOptions::memory_check`].
    pub memory_check: MemoryCheck,
    /// As [`StreamOptions::max_bytes_in_flight`]; only for streams.
    pub max_bytes_in_flight: Option<NonZeroU64>,
}

impl fmt::Debug for AsyncLoadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncLoadOptions")
            .field("threads", &self.threads)
            .field("io", &self.io)
            .field("progress", &self.progress.as_ref().map(|_| "Fn(Progress)"))
            .field("cancel", &self.cancel)
            .field("memory_check", &self.memory_check)
            .field("max_bytes_in_flight", &self.max_bytes_in_flight)
            .finish()
    }
}

impl AsyncLoadOptions {
    fn borrowed<'a>(&'a self, cancel: &'a Cancel) -> StreamOptions<'a> {
        let progress = self.progress.as_deref().map(|tell| tell as &(dyn Fn(Progress) + Sync));
        let Self { threads, io, memory_check, max_bytes_in_flight, .. } = *self;
        let load = LoadOptions { threads, io, progress, cancel: Some(cancel), memory_check };
        StreamOptions { load, max_bytes_in_flight }
    }
}

impl LoadPlan {
    /// Does what [`load`](Self::load) does, without blocking the caller's thread.
    ///
    /// When the future is dropped, each thread of the load stops within one request, of at most
    /// 8 MiB, and the memory is given back.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load); [`ErrorKind::Cancelled`] also if the runtime is shut down before the
    /// load begins, [`ErrorKind::Threads`] if it cannot start a thread.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub async fn load_async(&self, options: AsyncLoadOptions) -> Result<TensorStore> {
        let (plan, root) = (self.clone(), self.index.root.clone());
        let at_drop = CancelAtDrop(Cancel::child_of(options.cancel.as_ref()));
        let cancel = at_drop.0.clone();
        let load = move || plan.load(&options.borrowed(&cancel).load);
        let loaded = start(&root, load)?.await;
        drop(at_drop);
        loaded.unwrap_or_else(|error| Err(ended(error, ErrorKind::Cancelled.at(root))))
    }

    /// Does what [`stream`](Self::stream) does for async code: tensors in file order, while the
    /// next ones are read.
    ///
    /// A tensor is taken when the next one is asked for: until then its window is a part of what may
    /// be in flight. Reading stops as with [`load_async`](Self::load_async) when the stream is
    /// dropped.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    #[must_use]
    pub fn stream_async(&self, options: AsyncLoadOptions) -> TensorStream {
        let (sender, mut tensors) = mpsc::channel(1);
        let at_drop = CancelAtDrop(Cancel::child_of(options.cancel.as_ref()));
        let asking = Asking(Arc::default());
        let (plan, cancel, asked) = (self.clone(), at_drop.0.clone(), Arc::clone(&asking.0));
        let root = self.index.root.clone();
        let task = start(&root, move || {
            let options = options.borrowed(&cancel);
            let cancelled = || ErrorKind::Cancelled.at(&plan.index.root);
            let sent = Cell::new(0);
            let take = |tensor| {
                sent.set(sent.get() + 1);
                sender.blocking_send(Ok(tensor)).map_err(|_| cancelled())
            };
            let settle = || {
                let has_done = asked.wait_for_more_than(sent.get());
                if has_done { Ok(()) } else { Err(cancelled()) }
            };
            if let Err(error) = plan.stream_to(&options, Taker { take, settle }) {
                // Nobody hears it when the stream was dropped.
                sender.blocking_send(Err(error)).ok();
            }
        });
        if task.is_err() {
            tensors.close();
        }
        let task = Some(task);
        TensorStream { root, tensors, asking, has_asked: false, task, _at_drop: at_drop }
    }
}

/// Tensors as they are read; made by [`LoadPlan::stream_async`].
#[derive(Debug)]
pub struct TensorStream {
    root: PathBuf,
    tensors: mpsc::Receiver<Result<Tensor>>,
    asking: Asking,
    /// Whether a tensor has been asked for that has not come yet.
    has_asked: bool,
    /// What reads, or why nothing does, until its end has been seen.
    task: Option<Result<JoinHandle<()>>>,
    _at_drop: CancelAtDrop,
}

impl TensorStream {
    /// The next tensor, in file order; `None` after the last one and after an error.
    ///
    /// Nothing is lost if the future is dropped before it is ready.
    ///
    /// # Errors
    ///
    /// As [`LoadPlan::stream`]; [`ErrorKind::Cancelled`] also if the runtime is shut down before the
    /// stream begins, [`ErrorKind::Threads`] if it cannot start a thread.
    ///
    /// # Panics
    ///
    /// Panics as [`AsyncLoadOptions::progress`] did.
    pub async fn next(&mut self) -> Option<Result<Tensor>> {
        if !self.has_asked {
            self.asking.0.ask();
            self.has_asked = true;
        }
        let next = self.tensors.recv().await;
        self.has_asked = false;
        if next.is_none() {
            let done = match self.task.as_mut()? {
                Ok(task) => {
                    task.await.map_err(|error| ended(error, ErrorKind::Cancelled.at(&self.root)))
                }
                Err(error) => Err(error.clone()),
            };
            self.task = None;
            return done.err().map(Err);
        }
        next
    }
}

/// Ends a load when whoever waits for it is gone.
#[derive(Debug)]
struct CancelAtDrop(Cancel);

impl Drop for CancelAtDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Asks for tensors, until it is dropped.
#[derive(Debug)]
struct Asking(Arc<Asked>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Runs what blocks on a thread that the runtime keeps for that; the error where it has none names
/// `path`.
fn start<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let runtime = Handle::current();
    // Where the system starts no more threads, tokio panics, and may keep the work for later: what
    // cancels it is dropped then.
    catch_unwind(AssertUnwindSafe(|| runtime.spawn_blocking(work))).map_err(|panic| {
        let message = panic.downcast_ref::<String>().map_or("the runtime panicked", String::as_str);
        ErrorKind::Threads { threads: 1, message: message.into() }.at(path)
    })
}

/// What a task that did not finish means: a panic goes on, the end of the runtime is an error.
fn ended(error: JoinError, cancelled: Error) -> Error {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => cancelled,
    }
}
