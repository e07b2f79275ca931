//! The command `modeldir`: the library on the command line, with output for people and for scripts.

mod run;

mod args;
mod command;

mod contents;
mod digests;
mod page;
mod progress;
mod ranks;
mod write;

mod failure;
mod output;
mod switches;

use std::process::ExitCode;

fn main() -> ExitCode {
    run::main()
}
