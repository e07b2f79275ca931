//! How many workers a load has: one for each processor, and more while reads wait for a disk.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of workers of a load, which grows and shrinks.
#[derive(Debug)]
pub(super) struct Crew {
    /// More than these only get in each other's way while they copy.
    pub(super) copying: usize,
    /// Most workers at a time.
    pub(super) waiting: usize,
    at_work: AtomicUsize,
}

impl Crew {
    /// A crew with `copying` workers at work, and up to `waiting` while reads wait.
    pub(super) fn new(copying: usize, waiting: usize) -> Self {
        Self { copying, waiting, at_work: AtomicUsize::new(copying) }
    }

    /// Whether there is a place for one more, which is then taken.
    pub(super) fn grow(&self) -> bool {
        self.change(|at_work| (at_work < self.waiting).then_some(at_work + 1))
    }

    /// Whether there are more than copy, and the one who asks goes.
    pub(super) fn shrink(&self) -> bool {
        self.change(|at_work| (at_work > self.copying).then(|| at_work - 1))
    }

    fn change(&self, to: impl Fn(usize) -> Option<usize>) -> bool {
        self.at_work.fetch_update(Ordering::Relaxed, Ordering::Relaxed, to).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Crew;

    #[test]
    fn it_grows_and_shrinks_within_its_bounds() {
        let crew = Crew::new(2, 4);
        let grown = [crew.grow(), crew.grow(), crew.grow()];
        let shrunk = [crew.shrink(), crew.shrink(), crew.shrink()];
        assert_eq!((grown, shrunk), ([true, true, false], [true, true, false]));
    }
}
