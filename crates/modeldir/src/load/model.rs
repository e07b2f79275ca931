//! What the threads of a load share, under every order of their steps.
//!
//! The files that hold it are compiled once more here, with the locks, flags and threads of a model
//! checker: what is checked is the code itself. Unit tests that these files have of their own run
//! here too.
#![expect(clippy::duplicate_mod, reason = "the files are to be compiled with other locks")]
#![expect(dead_code, unreachable_pub, reason = "not all of what the files hold is modelled")]

#[path = "budget.rs"]
mod budget;
#[path = "cancel.rs"]
mod cancel;
#[path = "crew.rs"]
mod crew;
#[path = "files.rs"]
mod files;
#[path = "queue.rs"]
mod queue;
#[path = "relay.rs"]
mod relay;

mod crews;
mod streams;
mod sync;
