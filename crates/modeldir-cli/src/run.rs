//! How an example starts and ends.

use std::error::Error;
use std::io::{self, Write};
use std::process::{ExitCode, Termination};

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, format::FmtSpan};
use tracing_subscriber::prelude::*;

use crate::output::{Output, is_styled, styled};

/// What an example returns; any error ends it.
pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Runs an example; an error is shown and makes the exit code 1.
///
/// `RUST_LOG=modeldir=debug` shows the library's events, and the times of its spans, on standard
/// error.
pub fn run<T: Termination>(example: impl FnOnce(&mut Output) -> Result<T>) -> ExitCode {
    if let Some(targets) = std::env::var("RUST_LOG").ok().and_then(|log| log.parse().ok()) {
        show_log(targets);
    }
    let mut out = Output::lock();
    let result = example(&mut out).and_then(|done| {
        out.flush()?;
        Ok(done.report())
    });
    result.unwrap_or_else(|error| {
        show_error(&*error);
        ExitCode::FAILURE
    })
}

/// Writes the events and the ends of the spans of these targets to standard error.
fn show_log(targets: Targets) {
    let layer = fmt::layer().with_span_events(FmtSpan::CLOSE).with_writer(io::stderr);
    let layer = layer.with_ansi(is_styled(&io::stderr()));
    tracing_subscriber::registry().with(layer).with(targets).init();
}

/// Writes an error and what caused it to standard error.
pub fn show_error(error: &(dyn Error + 'static)) {
    let mut stderr = io::stderr().lock();
    let mut text = format!("{} {error}\n", styled(is_styled(&stderr), "1;31", "error:"));
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!("  caused by: {cause}\n"));
        source = cause.source();
    }
    // There is nobody left to tell when standard error is closed.
    let _closed = stderr.write_all(text.as_bytes());
}
