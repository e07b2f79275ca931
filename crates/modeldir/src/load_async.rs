//! Loading from async code: the blocking load, on a blocking thread of tokio; feature `tokio`.

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

use crate::load::{Asked, Cancel, LoadOptions, Taker};
use crate::plan::LoadPlan;
use crate::store::TensorStore;
use crate::{Error, ErrorKind, Result, Tensor};

impl LoadPlan {
    /// Loads as [`load`](Self::load) does, without blocking the caller's thread.
    ///
    /// The load begins when the future is first polled. When the future is dropped, each thread of
    /// the load stops after its current request of at most 8 MiB, and the memory is freed. The
    /// future borrows nothing, so it can be spawned as a task.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load); also [`ErrorKind::Cancelled`] if the runtime shuts down before the
    /// load begins, and [`ErrorKind::Threads`] if the runtime cannot start a thread.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn load_async(&self) -> impl Future<Output = Result<TensorStore>> + Send + use<> {
        self.load_async_with(&LoadOptions::default())
    }

    /// Loads as [`load_async`](Self::load_async) does, with options.
    ///
    /// [`LoadOptions::progress`] is called by the threads that read.
    ///
    /// # Errors
    ///
    /// As [`load_async`](Self::load_async).
    ///
    /// # Panics
    ///
    /// As [`load_async`](Self::load_async), and if [`LoadOptions::progress`] panics.
    pub fn load_async_with(
        &self,
        options: &LoadOptions,
    ) -> impl Future<Output = Result<TensorStore>> + Send + use<> {
        let plan = self.clone();
        let (options, at_drop) = cancelled_at_drop(options);
        async move {
            let root = plan.index.root.clone();
            let loaded = start(&root, move || plan.load_with(&options))?.await;
            drop(at_drop);
            loaded.unwrap_or_else(|error| Err(ended(error, &root)))
        }
    }

    /// Streams as [`stream`](Self::stream) does, for async code: tensors in file order, while the
    /// next ones are read.
    ///
    /// A tensor counts towards the bytes in flight until the next one is requested. When the stream
    /// is dropped, reading stops as with [`load_async`](Self::load_async).
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    #[must_use]
    pub fn stream_async(&self) -> TensorStream {
        self.stream_async_with(&LoadOptions::default())
    }

    /// Streams as [`stream_async`](Self::stream_async) does, with options.
    ///
    /// # Panics
    ///
    /// As [`stream_async`](Self::stream_async).
    #[must_use]
    pub fn stream_async_with(&self, options: &LoadOptions) -> TensorStream {
        let (sender, mut tensors) = mpsc::channel(1);
        let (options, at_drop) = cancelled_at_drop(options);
        let asking = Asking(Arc::default());
        let (plan, asked) = (self.clone(), Arc::clone(&asking.0));
        let root = self.index.root.clone();
        let task = start(&root, move || send_all(&plan, &options, &asked, &sender));
        if task.is_err() {
            tensors.close();
        }
        let task = Some(task);
        TensorStream { root, tensors, asking, has_asked: false, task, _at_drop: at_drop }
    }
}

/// Reads a plan and sends its tensors one by one.
fn send_all(
    plan: &LoadPlan,
    options: &LoadOptions,
    asked: &Asked,
    sender: &mpsc::Sender<Result<Tensor>>,
) {
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
    if let Err(error) = plan.stream_to(options, Taker { take, settle }) {
        // No one receives it if the stream was dropped.
        sender.blocking_send(Err(error)).ok();
    }
}

/// A stream of tensors in file order; returned by [`LoadPlan::stream_async`].
///
/// It implements [`Stream`]; [`next`](Self::next) and [`try_next`](Self::try_next) work without a
/// crate for streams.
///
/// ```
/// use modeldir::ModelDir;
///
/// # let path = modeldir_fixtures::model("llama");
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let model = ModelDir::open(path)?;
/// let mut tensors = model.plan().stream_async();
/// let mut bytes = 0;
/// while let Some(tensor) = tensors.try_next().await? {
///     bytes += tensor.byte_len() as u64; // upload it, convert it, write it
/// }
/// assert_eq!(bytes, model.byte_len());
/// # Ok::<(), modeldir::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TensorStream {
    root: PathBuf,
    tensors: mpsc::Receiver<Result<Tensor>>,
    asking: Asking,
    /// Whether a requested tensor has not arrived yet.
    has_asked: bool,
    /// The task that reads, or why it did not start; `None` once its end is known.
    task: Option<Result<JoinHandle<()>>>,
    _at_drop: CancelAtDrop,
}

impl TensorStream {
    /// The next tensor, in file order; `None` after the last one and after an error.
    ///
    /// Cancel safe: no tensor is lost if the future is dropped before it is ready.
    ///
    /// # Errors
    ///
    /// As [`LoadPlan::stream`]; also [`ErrorKind::Cancelled`] if the runtime shuts down before the
    /// stream begins, and [`ErrorKind::Threads`] if the runtime cannot start a thread.
    ///
    /// # Panics
    ///
    /// If [`LoadOptions::progress`] panics.
    pub async fn next(&mut self) -> Option<Result<Tensor>> {
        poll_fn(|context| self.poll(context)).await
    }

    /// The same as [`next`](Self::next), with the error outside: `while let Some(tensor) =
    /// tensors.try_next().await?` takes all tensors.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    ///
    /// # Panics
    ///
    /// As [`next`](Self::next).
    pub async fn try_next(&mut self) -> Result<Option<Tensor>> {
        self.next().await.transpose()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Tensor>>> {
        if !self.has_asked {
            self.asking.0.ask();
            self.has_asked = true;
        }
        let next = ready!(self.tensors.poll_recv(context));
        if next.is_some() {
            self.has_asked = false;
            return Poll::Ready(next);
        }
        let done = match &mut self.task {
            None => return Poll::Ready(None),
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(task)) => {
                let done = ready!(Pin::new(task).poll(context));
                // Cleared first, because `ended` resumes a panic of the task.
                self.task = None;
                done.map_err(|error| ended(error, &self.root))
            }
        };
        self.task = None;
        Poll::Ready(done.err().map(Err))
    }
}

impl Stream for TensorStream {
    type Item = Result<Tensor>;

    /// Polls for the same items as [`next`](TensorStream::next).
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }
}

/// The options with a cancel flag of their own, and a guard that sets this flag when dropped.
fn cancelled_at_drop(options: &LoadOptions) -> (LoadOptions, CancelAtDrop) {
    let cancel = Cancel::child_of(options.cancel.as_ref());
    let options = LoadOptions { cancel: Some(cancel.clone()), ..options.clone() };
    (options, CancelAtDrop(cancel))
}

/// Cancels a load when dropped.
#[derive(Debug)]
struct CancelAtDrop(Cancel);

impl Drop for CancelAtDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Requests tensors; dropping it ends the stream.
#[derive(Debug)]
struct Asking(Arc<Asked>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Runs blocking work on a blocking thread of the runtime. If there is none, the error names
/// `path`.
fn start<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let runtime = Handle::current();
    // Tokio panics if the system starts no more threads, and may keep the work for later. The
    // caller then drops the guard, which cancels it.
    catch_unwind(AssertUnwindSafe(|| runtime.spawn_blocking(work))).map_err(|panic| {
        let message = panic.downcast_ref::<String>().map_or("the runtime panicked", String::as_str);
        ErrorKind::Threads { threads: 1, message: message.into() }.at(path)
    })
}

/// Handles a task that did not finish: resumes its panic, or returns the end of the runtime as an
/// error.
fn ended(error: JoinError, root: &Path) -> Error {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => ErrorKind::Cancelled.at(root),
    }
}

#[cfg(test)]
mod tests;
