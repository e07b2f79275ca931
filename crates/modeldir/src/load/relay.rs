//! A thread that produces what the caller consumes; neither waits for the other for ever.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::PoisonError;

use super::sync::{self, Mutex, Receiver, SyncSender, sync_channel};
use crate::{Error, ErrorKind, Result};

/// Runs `make` in a thread of its own, while `take` receives what it sends; up to `ahead` items
/// wait in between.
///
/// `stop` is called when `take` has ended, however it ends. From then on `make` must not wait for
/// the receiver; sending fails.
///
/// # Errors
///
/// Those of `take`, then those of `make`; [`ErrorKind::Threads`] with the path if the thread cannot
/// be started.
///
/// # Panics
///
/// Resumes the panic of `take` or, if there was none, that of `make`.
pub(super) fn relay<T: Send, R: Send, E: From<Error>>(
    path: &Path,
    ahead: usize,
    stop: impl Fn(),
    make: impl FnOnce(&SyncSender<T>) -> Result<R> + Send,
    take: impl FnOnce(Receiver<T>) -> Result<(), E>,
) -> Result<R, E> {
    let made = Mutex::new(None);
    let taken = sync::scope(|scope| {
        let (sender, receiver) = sync_channel(ahead);
        let run = || {
            let done = catch_unwind(AssertUnwindSafe(move || make(&sender)));
            *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        };
        sync::spawn(scope, "modeldir-stream".into(), run).map_err(|error| {
            ErrorKind::Threads { threads: 1, message: error.to_string().into() }.at(path)
        })?;
        let taken = catch_unwind(AssertUnwindSafe(|| take(receiver)));
        stop();
        Ok::<_, Error>(taken)
    })?;
    let taken = taken.unwrap_or_else(|panic| resume_unwind(panic));
    let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    let made = made.expect("the thread has ended").unwrap_or_else(|panic| resume_unwind(panic));
    taken?;
    Ok(made?)
}
