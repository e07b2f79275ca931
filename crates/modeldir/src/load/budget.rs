//! The memory of a stream: bounded and reused.

use std::path::Path;
use std::sync::PoisonError;

use tensorfile::{Buffer, BufferMut};

use super::sync::{Condvar, Mutex, MutexGuard};
use crate::Result;

/// Regions in use and regions ready for reuse, of bounded total length.
#[derive(Debug)]
pub(super) struct Budget {
    max: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes of all regions, in use and free.
    charged: u64,
    /// Free regions.
    idle: Vec<BufferMut>,
    stopped: bool,
}

impl Budget {
    pub(super) fn new(max: u64) -> Self {
        Self { max, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Takes a region of at least this length; waits until enough is returned. `None` once stopped.
    ///
    /// The length must not exceed the bound.
    pub(super) fn take(&self, path: &Path, byte_len: usize) -> Result<Option<BufferMut>> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return Ok(None);
            }
            let State { charged, idle, .. } = &mut *state;
            if let Some(fitting) = idle.iter().position(|region| region.len() >= byte_len) {
                return Ok(Some(idle.swap_remove(fitting)));
            }
            while *charged + byte_len as u64 > self.max && !idle.is_empty() {
                *charged -= idle.pop().map_or(0, |region| region.len() as u64);
            }
            if *charged + byte_len as u64 <= self.max {
                *charged += byte_len as u64;
                break;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        Ok(Some(BufferMut::with_len(byte_len).map_err(|kind| kind.at(path))?))
    }

    /// Returns a region. A region that a tensor still references is no longer counted.
    pub(super) fn give_back(&self, buffer: Buffer) {
        let byte_len = buffer.len() as u64;
        let mut state = self.lock();
        match buffer.into_mut() {
            Ok(region) => state.idle.push(region),
            Err(_) => state.charged = state.charged.saturating_sub(byte_len),
        }
        self.changed.notify_all();
    }

    /// Ends all waiting: no more regions are handed out.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// The state is consistent after every statement, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use super::super::sync::{self, check};
    use super::Budget;

    #[test]
    fn memory_is_used_again_unless_somebody_keeps_it() {
        check(|| {
            let budget = Budget::new(100);
            let take = |len| budget.take(Path::new("m"), len).unwrap().unwrap();
            let first = take(60);
            let first_len = first.len();
            let first = first.freeze();
            let kept = first.clone();
            budget.give_back(first);
            // The kept region is no longer counted, or this would wait for ever.
            let second = take(100);
            budget.give_back(second.freeze());
            assert_eq!(take(30).len(), 100);
            assert_eq!(kept.len(), first_len);
        });
    }

    #[test]
    fn who_waits_gets_what_is_given_back_or_nothing_at_the_end() {
        check(|| {
            let budget = Budget::new(100);
            let region = budget.take(Path::new("m"), 80).unwrap().unwrap();
            let taken = Mutex::new(Vec::new());
            let wait = || {
                let region = budget.take(Path::new("m"), 90).unwrap();
                taken.lock().unwrap().push(region.map(|region| region.len()));
            };
            sync::scope(|scope| {
                sync::spawn(scope, "waiting".into(), wait).unwrap();
                budget.give_back(region.freeze());
            });
            sync::scope(|scope| {
                sync::spawn(scope, "waiting".into(), wait).unwrap();
                budget.stop();
            });
            let taken = taken.into_inner().unwrap();
            assert_eq!(taken[0], Some(90));
            assert_eq!(taken[1], None);
        });
    }
}
