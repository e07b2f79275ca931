//! Standard output: buffered, in colour on a terminal only, and without errors after the reader
//! closes it.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

/// Buffered standard output.
#[derive(Debug)]
pub(crate) struct Output {
    out: BufWriter<QuietStdout>,
    is_styled: bool,
}

impl Output {
    /// Locks standard output until the value is dropped.
    pub(crate) fn lock() -> Self {
        let stdout = io::stdout().lock();
        let is_styled = is_styled(&stdout);
        Self { out: BufWriter::new(QuietStdout(stdout)), is_styled }
    }

    /// Returns the text in bold on a terminal, and as it is elsewhere.
    pub(crate) fn bold(&self, text: impl Display) -> String {
        styled(self.is_styled, "1", text)
    }

    /// Returns the text in green on a terminal, and as it is elsewhere.
    pub(crate) fn green(&self, text: impl Display) -> String {
        styled(self.is_styled, "32", text)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether a stream is a terminal whose user has not chosen plain text.
pub(crate) fn is_styled(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Wraps a text in the terminal's code for a style.
pub(crate) fn styled(is_styled: bool, code: &str, text: impl Display) -> String {
    if is_styled { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
}

/// Standard output that discards writes to a closed pipe, as after `| head -1`: the command runs to
/// its end, so that its exit code stays correct.
#[derive(Debug)]
struct QuietStdout(StdoutLock<'static>);

impl Write for QuietStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(self.0.flush(), ())
    }
}

/// Treats a write to a closed pipe as done.
fn unless_closed<T>(result: io::Result<T>, done: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(done),
        other => other,
    }
}
