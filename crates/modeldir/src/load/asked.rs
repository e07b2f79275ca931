//! Counts the tensors that an async caller has requested, so that the reading thread can wait.

use std::sync::PoisonError;

use super::sync::{Condvar, Mutex, MutexGuard};

/// The number of tensors that an async caller has requested.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    count: usize,
    has_left: bool,
}

impl Asked {
    /// Requests one more: the caller is done with the earlier ones, or keeps them.
    pub(crate) fn ask(&self) {
        self.lock().count += 1;
        self.changed.notify_all();
    }

    /// Ends the requests: no more will come.
    pub(crate) fn leave(&self) {
        self.lock().has_left = true;
        self.changed.notify_all();
    }

    /// Waits until more than this many have been requested; false if the requests have ended.
    pub(crate) fn wait_for_more_than(&self, count: usize) -> bool {
        let mut state = self.lock();
        while state.count <= count && !state.has_left {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.count > count
    }

    /// The state is consistent after every statement, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sync::{self, check};
    use super::Asked;

    #[test]
    fn who_waits_hears_of_the_next_one_or_that_there_is_none() {
        check(|| {
            let asked = Asked::default();
            sync::scope(|scope| {
                let ask = || {
                    asked.ask();
                    asked.ask();
                    asked.leave();
                };
                sync::spawn(scope, "asking".into(), ask).unwrap();
                assert!(asked.wait_for_more_than(0) && asked.wait_for_more_than(1));
                assert!(!asked.wait_for_more_than(2));
            });
        });
    }
}
