//! Buffers of one worker, and the hook that starts more workers before a read waits.
#![deny(clippy::indexing_slicing)]

use std::path::Path;

use tensorfile::{BufferMut, HUGE_PAGE, Read};

use super::options::Io;
use crate::plan::layout::{MAX_BLOCK_BYTES, PAGE};
use crate::plan::request::Request;

/// Buffers of one worker, allocated on first use, and the hook before a read waits.
///
/// They are multiples of huge pages, so that they lie in such: a device takes few long pieces of
/// memory faster than many short ones.
pub(super) struct Scratch<'w> {
    block: Option<BufferMut>,
    bounce: Option<BufferMut>,
    bounce_len: usize,
    before_waiting: &'w dyn Fn(),
    has_waited: bool,
}

impl<'w> Scratch<'w> {
    /// No buffers yet; `before_waiting` is called before each read that waits for a disk.
    pub(super) fn new(before_waiting: &'w dyn Fn()) -> Self {
        let bounce_len = HUGE_PAGE;
        Self { block: None, bounce: None, bounce_len, before_waiting, has_waited: false }
    }

    /// Notes that a read is about to wait for a disk.
    pub(super) fn wait(&mut self) {
        self.has_waited = true;
        (self.before_waiting)();
    }

    /// Whether a read has waited since the last call.
    pub(super) fn has_waited(&mut self) -> bool {
        std::mem::take(&mut self.has_waited)
    }

    /// The buffer for a block of rows or a piece to convert; it starts on a page. `path` is for the
    /// error if allocation fails.
    pub(super) fn block(&mut self, path: &Path, len: usize) -> tensorfile::Result<&mut [u8]> {
        at_least(&mut self.block, path, len)
    }

    /// The bounce buffer of direct reads; empty if it cannot be allocated.
    pub(super) fn bounce(&mut self, path: &Path) -> &mut [u8] {
        at_least(&mut self.bounce, path, self.bounce_len).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn refuse_bounce(&mut self) {
        self.bounce_len = 1 << 60;
    }
}

/// The most bytes of buffers that this many workers need for these requests.
pub(super) fn most(requests: &[Request], workers: usize, io: Io) -> u64 {
    let bounce = if io == Io::Buffered { 0 } else { HUGE_PAGE as u64 };
    let block = requests.iter().map(block_len).max().unwrap_or(0);
    let each = bounce.saturating_add(block.next_multiple_of(HUGE_PAGE as u64));
    each.saturating_mul(workers as u64)
}

/// Bytes of block buffer that a request needs: for rows that are read whole, and for pieces that
/// are transformed.
fn block_len(request: &Request) -> u64 {
    let len = match request.read {
        Read::Block(_) => request.byte_len(),
        _ if request.transform.is_copy() => return 0,
        Read::Whole(_) | Read::Runs(_) => request.byte_len().min(MAX_BLOCK_BYTES),
    };
    // A block includes the rest of its first and last page.
    len.saturating_add(2 * PAGE)
}

/// The buffer, allocated or enlarged if necessary.
fn at_least<'b>(
    buffer: &'b mut Option<BufferMut>,
    path: &Path,
    len: usize,
) -> tensorfile::Result<&'b mut [u8]> {
    let fitting = buffer.take().filter(|buffer| buffer.len() >= len);
    let buffer = match fitting {
        Some(fitting) => buffer.insert(fitting),
        None => {
            let longer = BufferMut::with_len(len.next_multiple_of(HUGE_PAGE));
            buffer.insert(longer.map_err(|kind| kind.at(path))?)
        }
    };
    Ok(buffer.as_mut_slice())
}

#[cfg(test)]
mod tests {
    use super::{HUGE_PAGE, most};
    use crate::load::Io;
    use crate::{LoadPlan, ModelDir};
    use modeldir_fixtures::{ShardedModel, Tensor};
    use tensorfile::Float;

    #[test]
    fn what_is_converted_takes_a_block_for_each_worker() {
        let model = ShardedModel::new(1).tensor(1, Tensor::random("w", "BF16", &[3 << 20]));
        let folder = tempfile::tempdir().unwrap();
        model.write(folder.path()).unwrap();
        let plan = ModelDir::open(folder.path()).unwrap().plan();
        let of = |plan: &LoadPlan, io| most(plan.requests(), 2, io) / HUGE_PAGE as u64;
        assert_eq!((of(&plan, Io::Buffered), of(&plan, Io::Auto)), (0, 2));
        let plan = plan.cast(Float::F32);
        // Pieces of 4 MiB with their pages, in whole huge pages.
        assert_eq!((of(&plan, Io::Buffered), of(&plan, Io::Auto)), (6, 8));
    }
}
