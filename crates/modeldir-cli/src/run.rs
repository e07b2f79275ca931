//! How the command starts and ends.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::prelude::*;

use crate::command::Cli;
use crate::failure::Result;
use crate::output::{Output, is_styled};

/// Runs the command line, prints a failure, and returns the exit code.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(targets) = std::env::var("RUST_LOG").ok().and_then(|log| log.parse().ok()) {
        show_log(targets);
    }
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}

/// Runs the sub-command; all that it has printed is written when this returns.
fn run(cli: &Cli) -> Result {
    let mut out = Output::lock();
    let done = cli.run(&mut out);
    // A failure of the sub-command matters more than one of writing.
    done.and(out.flush().map_err(Into::into))
}

/// Writes the events and span ends of these targets to standard error.
fn show_log(targets: Targets) {
    let layer =
        tracing_subscriber::fmt::layer().with_span_events(FmtSpan::CLOSE).with_writer(io::stderr);
    let layer = layer.with_ansi(is_styled(&io::stderr()));
    tracing_subscriber::registry().with(layer).with(targets).init();
}
