//! Streams: a loader that waits for memory and a taker that waits for windows.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use tensorfile::Buffer;

use super::budget::Budget;
use super::relay::relay;
use super::sync::{assert_caught, count};
use crate::{Error, Result};

/// A stream of windows of one byte.
#[derive(Clone, Copy, Debug)]
struct Stream {
    windows: usize,
    /// Windows for which there is memory, and how many may wait to be taken.
    memory: u64,
    ahead: usize,
    /// The window at which taking ends, and how.
    ends: Option<(usize, How)>,
    /// The window at which the loader fails.
    fails: Option<(usize, How)>,
    /// Whether the taker keeps every window.
    keeps: bool,
    /// Whether nobody tells the loader that the taking has ended.
    is_broken: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Error,
    Panic,
}

const STREAM: Stream = Stream {
    windows: 3,
    memory: 2,
    ahead: 1,
    ends: None,
    fails: None,
    keeps: false,
    is_broken: false,
};

/// What an end at this window looks like.
fn end(number: usize, how: How) -> Result<()> {
    match how {
        How::Error => Err(Error::Threads { threads: number, message: "ended".into() }),
        How::Panic => resume_unwind(Box::new(number)),
    }
}

/// Runs a stream; returns how many windows were taken, and how it ended.
fn run(stream: Stream) -> (usize, Option<(usize, How)>) {
    let budget = Budget::new(stream.memory);
    let (mut taken, mut kept) = (0, Vec::new());
    let done = catch_unwind(AssertUnwindSafe(|| {
        relay(
            stream.ahead,
            || {
                if !stream.is_broken {
                    budget.stop();
                }
            },
            |sender| {
                for number in 0..stream.windows {
                    if let Some((_, how)) = stream.fails.filter(|(at, _)| *at == number) {
                        end(number, how)?;
                    }
                    let Some(region) = budget.take(Path::new("m"), 1)? else { break };
                    if sender.send((number, region.freeze())).is_err() {
                        break;
                    }
                }
                Ok(())
            },
            |windows| {
                for (number, buffer) in windows {
                    assert_eq!(number, taken, "windows come in order");
                    if let Some((_, how)) = stream.ends.filter(|(at, _)| *at == number) {
                        end(number, how)?;
                    }
                    taken += 1;
                    let clone: Buffer = buffer.clone();
                    if stream.keeps {
                        kept.push(clone);
                    } else {
                        drop(clone);
                    }
                    budget.give_back(buffer);
                }
                Ok::<(), Error>(())
            },
        )
    }));
    let ended = match done {
        Ok(Ok(())) => None,
        Ok(Err(Error::Threads { threads, .. })) => Some((threads, How::Error)),
        Ok(Err(error)) => panic!("{error}"),
        Err(panic) => Some((*panic.downcast::<usize>().unwrap(), How::Panic)),
    };
    (taken, ended)
}

#[test]
fn every_window_is_taken_in_order_with_little_memory() {
    let mut orders = 0;
    for memory in [1, 2] {
        for keeps in [false, true] {
            let stream = Stream { memory, keeps, ..STREAM };
            let title = format!("memory for {memory} windows, kept: {keeps}");
            orders += count(&title, move || assert_eq!(run(stream), (3, None)));
        }
    }
    assert!(orders > 100, "{orders}");
}

#[test]
fn a_stream_ends_wherever_and_however_taking_or_loading_ends() {
    for how in [How::Error, How::Panic] {
        for at in 0..3 {
            let ending = Stream { ends: Some((at, how)), ..STREAM };
            let title = format!("taking ends at {at} by {how:?}");
            count(&title, move || assert_eq!(run(ending), (at, Some((at, how)))));
            let failing = Stream { fails: Some((at, how)), ..STREAM };
            let title = format!("loading ends at {at} by {how:?}");
            count(&title, move || assert_eq!(run(failing), (at, Some((at, how)))));
        }
        // Whoever takes has seen less than the loader has made.
        let both = Stream { ends: Some((0, how)), fails: Some((2, How::Panic)), ..STREAM };
        count(&format!("both end, taking by {how:?}"), move || {
            let (taken, ended) = run(both);
            let loading_panicked = how == How::Error && ended == Some((2, How::Panic));
            assert!(taken == 0 && (ended == Some((0, how)) || loading_panicked), "{ended:?}");
        });
    }
}

#[test]
fn a_loader_that_is_not_told_of_the_end_is_caught() {
    let broken = Stream { memory: 1, ends: Some((0, How::Error)), is_broken: true, ..STREAM };
    assert_caught("nobody tells the loader that taking has ended", move || {
        run(broken);
    });
}
