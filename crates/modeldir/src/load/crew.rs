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
    /// Most that have been at work at a time.
    peak: AtomicUsize,
}

impl Crew {
    /// A crew with `copying` workers at work, and up to `waiting` while reads wait.
    pub(super) fn new(copying: usize, waiting: usize) -> Self {
        let (at_work, peak) = (AtomicUsize::new(copying), AtomicUsize::new(copying));
        Self { copying, waiting, at_work, peak }
    }

    /// Whether there is a place for one more, which is then taken.
    pub(super) fn grow(&self) -> bool {
        let grown = self.change(|at_work| (at_work < self.waiting).then_some(at_work + 1));
        if let Ok(before) = grown {
            self.peak.fetch_max(before + 1, Ordering::Relaxed);
        }
        grown.is_ok()
    }

    /// Whether there are more than copy, and the one who asks goes.
    pub(super) fn shrink(&self) -> bool {
        self.change(|at_work| (at_work > self.copying).then(|| at_work - 1)).is_ok()
    }

    /// Most workers that have been at work at a time.
    pub(super) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// Changes the number at work, and returns what it was; an error if it stays.
    fn change(&self, to: impl Fn(usize) -> Option<usize>) -> Result<usize, usize> {
        self.at_work.fetch_update(Ordering::Relaxed, Ordering::Relaxed, to)
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
        assert_eq!(crew.peak(), 4);
    }
}
