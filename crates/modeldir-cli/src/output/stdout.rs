//! Standard output: buffered, in colour on a terminal only, and without errors after the reader
//! closes it.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};

use super::style::{is_styled, styled};

/// Buffered standard output.
#[derive(Debug)]
pub(crate) struct Output {
    out: BufWriter<QuietStdout>,
    is_styled: bool,
    has_text: bool,
}

impl Output {
    /// Locks standard output until the value is dropped.
    pub(crate) fn lock() -> Self {
        let stdout = io::stdout().lock();
        let is_styled = is_styled(&stdout);
        Self { out: BufWriter::new(QuietStdout(stdout)), is_styled, has_text: false }
    }

    /// Writes an empty line before a further block of lines.
    pub(crate) fn gap(&mut self) -> io::Result<()> {
        if self.has_text { writeln!(self) } else { Ok(()) }
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
        self.has_text |= !bytes.is_empty();
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
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

/// Treats a write to a closed pipe as done; any other error says where it occurred.
fn unless_closed<T>(result: io::Result<T>, done: T) -> io::Result<T> {
    match result {
        Ok(written) => Ok(written),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(done),
        Err(error) => Err(io::Error::new(error.kind(), format!("standard output: {error}"))),
    }
}
