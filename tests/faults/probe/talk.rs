//! Lines to whoever started this process, and bytes from there.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::AsFd;

use serde_json::Value;

/// Standard input and output, by calls that the library does not make.
pub(crate) struct Talk {
    from: File,
    to: File,
}

impl Talk {
    pub(crate) fn new() -> io::Result<Self> {
        let from = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let to = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self { from, to })
    }

    /// Writes a line. If nobody is there to read it, nobody is there to be told either.
    pub(crate) fn say(&self, value: &Value) {
        let line = format!("{value}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match (&self.to).write_vectored(&[IoSlice::new(rest)]) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Waits for a byte; false at the end of the input.
    pub(crate) fn wait(&self) -> bool {
        let mut byte = [0];
        loop {
            match (&self.from).read_vectored(&mut [IoSliceMut::new(&mut byte)]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.is_ok_and(|count| count > 0),
            }
        }
    }

    /// Waits for the end of the input.
    pub(crate) fn wait_for_end(&self) {
        while self.wait() {}
    }
}
