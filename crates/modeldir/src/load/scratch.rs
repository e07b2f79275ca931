//! What one worker brings to its reads: memory, and a way to call for help.
#![deny(clippy::indexing_slicing)]

use std::path::Path;

use tensorfile::BufferMut;

/// Buffers are multiples of this, so that they lie in huge pages: a device takes few long pieces of
/// memory faster than many short ones.
const HUGE_PAGE: usize = 2 << 20;

/// Buffers of one worker, made when they are first used, and what it does before it waits.
pub(super) struct Scratch<'w> {
    block: Option<BufferMut>,
    bounce: Option<BufferMut>,
    before_waiting: &'w dyn Fn(),
    has_waited: bool,
}

impl<'w> Scratch<'w> {
    /// Nothing yet; `before_waiting` is called before each read that waits for a disk.
    pub(super) fn new(before_waiting: &'w dyn Fn()) -> Self {
        Self { block: None, bounce: None, before_waiting, has_waited: false }
    }

    /// Says that a read is going to wait for a disk.
    pub(super) fn wait(&mut self) {
        self.has_waited = true;
        (self.before_waiting)();
    }

    /// Whether a read has waited since this was last asked.
    pub(super) fn has_waited(&mut self) -> bool {
        std::mem::take(&mut self.has_waited)
    }

    /// Memory for a block of rows, which starts on a page; `path` is the file that is named if there
    /// is none.
    pub(super) fn block(&mut self, path: &Path, len: usize) -> tensorfile::Result<&mut [u8]> {
        at_least(&mut self.block, path, len)
    }

    /// Memory for what a direct read has to bounce.
    pub(super) fn bounce(&mut self, path: &Path) -> tensorfile::Result<&mut [u8]> {
        at_least(&mut self.bounce, path, HUGE_PAGE)
    }
}

/// The buffer, made or made longer if it has to be.
fn at_least<'b>(
    buffer: &'b mut Option<BufferMut>,
    path: &Path,
    len: usize,
) -> tensorfile::Result<&'b mut [u8]> {
    let fitting = buffer.take().filter(|buffer| buffer.len() >= len);
    let buffer = match fitting {
        Some(fitting) => buffer.insert(fitting),
        None => buffer.insert(BufferMut::with_len(path, len.next_multiple_of(HUGE_PAGE))?),
    };
    Ok(buffer.as_mut_slice())
}
