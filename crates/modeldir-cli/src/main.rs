//! The command `modeldir`: the library on the command line, with output for people and for scripts.

mod args;
mod beside;
mod command;
mod digests;
mod failure;
mod json;
mod mending;
mod model_json;
mod output;
mod page;
mod progress;
mod ranks;
mod report;
mod run;
mod saved;
mod table;
mod tally;
mod tensors;
mod text;
mod values;
mod write;

use std::process::ExitCode;

fn main() -> ExitCode {
    run::main()
}
