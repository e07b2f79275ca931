//! How the command starts and ends.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::prelude::*;

use crate::command::Cli;
use crate::output::{Output, is_styled, styled};

/// The result of a sub-command; any error ends it.
pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// An error in a command line that is well formed but impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Usage(String);

impl Usage {
    /// Makes an error with this message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// Runs the command line, prints an error, and returns the exit code.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(targets) = std::env::var("RUST_LOG").ok().and_then(|log| log.parse().ok()) {
        show_log(targets);
    }
    let mut out = Output::lock();
    let result = cli.run(&mut out).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    result.unwrap_or_else(|error| {
        show_error(&*error);
        if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
    })
}

/// Writes the events and span ends of these targets to standard error.
fn show_log(targets: Targets) {
    let layer =
        tracing_subscriber::fmt::layer().with_span_events(FmtSpan::CLOSE).with_writer(io::stderr);
    let layer = layer.with_ansi(is_styled(&io::stderr()));
    tracing_subscriber::registry().with(layer).with(targets).init();
}

/// Writes an error and what caused it to standard error.
pub(crate) fn show_error(error: &(dyn Error + 'static)) {
    let mut stderr = io::stderr().lock();
    let mut text = format!("{} {error}\n", styled(is_styled(&stderr), "1;31", "error:"));
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!("  caused by: {cause}\n"));
        source = cause.source();
    }
    // If standard error is closed, the message is lost.
    let _closed = stderr.write_all(text.as_bytes());
}
