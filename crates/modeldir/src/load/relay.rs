//! A thread that makes what the caller takes; neither is left waiting for the other.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::PoisonError;

use super::sync::{self, Mutex, Receiver, SyncSender, sync_channel};
use crate::{Error, ErrorKind, Result};

/// Runs `make` in a thread of its own, while `take` gets what it sends, up to `ahead` of it later.
///
/// `stop` is called when the taking has ended, in whatever way. From then on `make` must wait for
/// nothing but its own work; that nobody receives any more is an error of sending.
///
/// # Errors
///
/// Those of `take`, then those of `make`; [`ErrorKind::Threads`] with the path if there can be no
/// thread.
///
/// # Panics
///
/// Panics as `take` did or, if it did not, as `make`.
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
