//! Why a sub-command fails, and the exit code that says so.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::output::{is_styled, styled};
use crate::switches::with_switches;

/// The result of a sub-command; any failure ends it.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

/// Why a sub-command fails.
///
/// Any error becomes a failure by `?`. Only people read it, so its type does not matter.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The model is at fault, or a file cannot be read or written.
    Error(Box<dyn Error>),
    /// The model is at fault, and the sub-command has printed why.
    Printed,
    /// The command line is well formed but impossible.
    Usage(String),
}

impl Failure {
    /// Writes the failure to standard error, unless that is done.
    pub(crate) fn print(&self) {
        match self {
            Self::Error(error) => print_error(&**error),
            Self::Printed => {}
            Self::Usage(message) => print_lines(message, None),
        }
    }

    /// The exit code: 2 for a wrong command line, and 1 for anything else.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Error(_) | Self::Printed => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
        }
    }
}

impl<E: Into<Box<dyn Error>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// Writes an error and its causes to standard error.
pub(crate) fn print_error(error: &dyn Error) {
    print_lines(&with_switches(&error.to_string()), error.source());
}

/// Writes a note to standard error, where scripts that read standard output do not meet it.
pub(crate) fn note(text: impl Display) {
    let mut stderr = io::stderr().lock();
    let text = format!("{} {text}\n", styled(is_styled(&stderr), "1;33", "note:"));
    // If standard error is closed, the note is lost.
    let _closed = stderr.write_all(text.as_bytes());
}

/// Writes a message and its causes to standard error.
fn print_lines(message: &str, mut cause: Option<&dyn Error>) {
    let mut stderr = io::stderr().lock();
    let mut text = format!("{} {message}\n", styled(is_styled(&stderr), "1;31", "error:"));
    while let Some(error) = cause {
        text.push_str(&format!("  caused by: {error}\n"));
        cause = error.source();
    }
    // If standard error is closed, the message is lost.
    let _closed = stderr.write_all(text.as_bytes());
}
