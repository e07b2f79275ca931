//! Streams: a loader that waits for memory and a taker that waits for windows.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use tensorfile::Buffer;

use super::asked::Asked;
use super::budget::Budget;
use super::relay::relay;
use super::sync::{self, AtomicBool, AtomicUsize, Ordering, assert_caught, count, sync_channel};
use crate::{Error, ErrorKind, Result};

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
        How::Error => Err(ErrorKind::Threads { threads: number, message: "ended".into() }.at("m")),
        How::Panic => resume_unwind(Box::new(number)),
    }
}

/// Runs a stream; returns how many windows were taken, and how it ended.
fn run(stream: Stream) -> (usize, Option<(usize, How)>) {
    let budget = Budget::new(stream.memory);
    let (mut taken, mut kept) = (0, Vec::new());
    let done = catch_unwind(AssertUnwindSafe(|| {
        relay(
            Path::new("m"),
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
    let ended = match done.map(|done| done.map_err(Error::into_kind)) {
        Ok(Ok(())) => None,
        Ok(Err(ErrorKind::Threads { threads, .. })) => Some((threads, How::Error)),
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

/// A stream whose windows are handed on to a thread that holds each until it asks for the next one.
#[derive(Clone, Copy, Debug)]
struct HandedOn {
    windows: usize,
    memory: u64,
    /// How often the thread asks before it leaves.
    asks: usize,
    /// Whether memory is used again before the thread has done with it.
    is_hasty: bool,
}

const HANDED_ON: HandedOn = HandedOn { windows: 3, memory: 2, asks: 4, is_hasty: false };

/// Runs such a stream, by the protocol of `load/stream.rs` and `load_async.rs`; returns how many
/// windows the thread got, and whether the stream ended well. That those two keep to it is held by
/// `tests/load_memory`, which counts the memory of async streams.
fn hand_on(stream: HandedOn) -> (usize, bool) {
    let (budget, asked) = (Budget::new(stream.memory), Asked::default());
    let [in_flight, received] = [0, 0].map(AtomicUsize::new);
    let (sender, receiver) = sync_channel::<Buffer>(1);
    let (budget, asked, in_flight, received) = (&budget, &asked, &in_flight, &received);
    let hold = move || {
        for _ in 0..stream.asks {
            asked.ask();
            let Ok(window) = receiver.recv() else { break };
            received.fetch_add(1, Ordering::SeqCst);
            drop(window);
            in_flight.fetch_sub(1, Ordering::SeqCst);
        }
        drop(receiver);
        asked.leave();
    };
    let (loaded, windows) = sync_channel::<Buffer>(1);
    let load = move || {
        for _ in 0..stream.windows {
            let Some(region) = budget.take(Path::new("m"), 1).unwrap() else { break };
            let before = in_flight.fetch_add(1, Ordering::SeqCst);
            assert!((before as u64) < stream.memory, "more in flight than there may be");
            if loaded.send(region.freeze()).is_err() {
                break;
            }
        }
    };
    // It has the sender, which ends with it, or the holding thread would wait for ever.
    let take = move || {
        for (number, window) in windows.into_iter().enumerate() {
            if sender.send(window.clone()).is_err() {
                return false;
            }
            let is_last = number + 1 == stream.windows;
            if !is_last && !stream.is_hasty && !asked.wait_for_more_than(number + 1) {
                return false;
            }
            budget.give_back(window);
        }
        true
    };
    let is_done = AtomicBool::new(false);
    // Not by a relay: in the model checker whoever opens a scope must not wait for anything else
    // when the last thread of it ends.
    sync::scope(|scope| {
        sync::spawn(scope, "holding".into(), hold).unwrap();
        sync::spawn(scope, "loading".into(), load).unwrap();
        let take = || {
            is_done.store(take(), Ordering::SeqCst);
            budget.stop();
        };
        sync::spawn(scope, "taking".into(), take).unwrap();
    });
    (received.load(Ordering::SeqCst), is_done.load(Ordering::SeqCst))
}

#[test]
fn windows_that_are_handed_on_count_until_the_next_one_is_asked_for() {
    for memory in [1, 2] {
        let stream = HandedOn { memory, ..HANDED_ON };
        let title = format!("handed on, memory for {memory} windows");
        count(&title, move || assert_eq!(hand_on(stream), (3, true)));
    }
}

#[test]
fn a_stream_ends_wherever_the_one_leaves_to_whom_it_is_handed_on() {
    for asks in 0..3 {
        let stream = HandedOn { asks, ..HANDED_ON };
        let title = format!("handed on, left after {asks}");
        count(&title, move || assert_eq!(hand_on(stream), (asks, false)));
    }
}

#[test]
fn memory_that_is_used_before_the_taker_has_done_is_caught() {
    let hasty = HandedOn { is_hasty: true, ..HANDED_ON };
    assert_caught("memory is used again while a window is held", move || {
        hand_on(hasty);
    });
}
