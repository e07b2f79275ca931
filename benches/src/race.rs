//! Runs contestants in turns and prints medians and ratios.

use std::time::{Duration, Instant};

/// One way of doing the measured work.
pub struct Contestant<'a> {
    name: &'a str,
    prepare: Box<dyn FnMut() + 'a>,
    work: Box<dyn FnMut() -> Box<dyn std::any::Any> + 'a>,
}

impl std::fmt::Debug for Contestant<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contestant").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Contestant<'a> {
    /// Returns a contestant whose work is timed. What the work returns is dropped after the clock
    /// has stopped.
    pub fn new<T: 'static>(name: &'a str, mut work: impl FnMut() -> T + 'a) -> Self {
        let work = Box::new(move || Box::new(work()) as Box<dyn std::any::Any>);
        Self { name, prepare: Box::new(|| {}), work }
    }

    /// Runs this before each turn, outside the clock.
    #[must_use]
    pub fn prepared(mut self, prepare: impl FnMut() + 'a) -> Self {
        self.prepare = Box::new(prepare);
        self
    }

    fn turn(&mut self) -> Duration {
        (self.prepare)();
        let start = Instant::now();
        let made = (self.work)();
        let took = start.elapsed();
        drop(made);
        took
    }
}

/// Lets the contestants take turns for some rounds after one that does not count, and prints for
/// each the median, the fastest turn, bytes per second by the median, and the median beside that
/// of the first contestant.
pub fn race(title: &str, rounds: usize, bytes: u64, mut contestants: Vec<Contestant<'_>>) {
    println!("{title}: {rounds} rounds, interleaved");
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); contestants.len()];
    for round in 0..=rounds {
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            let took = contestant.turn();
            if round > 0 {
                times.push(took.as_secs_f64());
            }
        }
    }
    let width = contestants.iter().map(|c| c.name.len()).max().unwrap_or(0);
    println!(
        "{:width$}  {:>10}  {:>10}  {:>8}  {:>8}",
        "", "median ms", "min ms", "GiB/s", "ratio"
    );
    let medians: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
    for ((contestant, times), median) in contestants.iter().zip(&times).zip(&medians) {
        let gib_s = bytes as f64 / median / f64::from(1 << 30);
        let (median_ms, min_ms, ratio) = (median * 1e3, times[0] * 1e3, median / medians[0]);
        let name = contestant.name;
        println!("{name:width$}  {median_ms:10.2}  {min_ms:10.2}  {gib_s:8.2}  {ratio:8.2}");
    }
}

/// Whether the part of a bench of this name is to run: all are, unless the command line names some.
pub fn is_wanted(part: &str) -> bool {
    let named = || std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    named().next().is_none() || named().any(|name| name == part)
}

/// Returns the median of some times, and sorts them.
pub fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
