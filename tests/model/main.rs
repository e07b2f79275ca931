//! What the threads of a load share, under every order of their steps.
//!
//! The files of the library that hold it are compiled once more here, with the locks, flags and
//! threads of a model checker: what is checked is the code itself. Unit tests that these files have
//! of their own run here too. A package of its own, for the model checker needs a newer compiler.
#![expect(clippy::print_stdout, reason = "how many orders there were is told")]
#![expect(clippy::panic, clippy::unwrap_used, reason = "what is not expected fails the test")]
#![expect(dead_code, unreachable_pub, reason = "not all of what the files hold is modelled")]

#[path = "../../crates/modeldir/src/load/asked.rs"]
mod asked;
#[path = "../../crates/modeldir/src/load/budget.rs"]
mod budget;
#[path = "../../crates/modeldir/src/load/cancel.rs"]
mod cancel;
#[path = "../../crates/modeldir/src/load/crew.rs"]
mod crew;
#[path = "../../crates/modeldir/src/load/files.rs"]
mod files;
#[path = "../../crates/modeldir/src/load/queue.rs"]
mod queue;
#[path = "../../crates/modeldir/src/load/relay.rs"]
mod relay;

mod crews;
mod streams;
mod sync;

// As the files know them.
use modeldir::{Error, ErrorKind, Result};
