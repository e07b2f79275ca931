//! `ReadAt`: reading at a position, from any source of bytes.

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::{Buffer, Result};

/// A source of a file's bytes, read at any position, without a cursor.
///
/// Several threads can read at once.
///
/// ```
/// use tensorfile::ReadAt;
///
/// let mut two = [0; 2];
/// [1, 2, 3, 4].read_exact_at(&mut two, 1)?;
/// assert_eq!(two, [2, 3]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait ReadAt {
    /// The current number of bytes.
    ///
    /// # Errors
    ///
    /// Fails if the operating system does.
    fn byte_len(&self) -> io::Result<u64>;

    /// Fills `buf` with the bytes from `offset` on; retries interrupted and short reads.
    ///
    /// # Errors
    ///
    /// Fails with [`io::ErrorKind::UnexpectedEof`] if the bytes end too early; the content of `buf`
    /// is then unspecified.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;

    /// Checks that the bytes are not known to have changed since the source was opened.
    ///
    /// Called after bytes are read and before they are returned. The default always succeeds, for
    /// sources that cannot know.
    ///
    /// # Errors
    ///
    /// Fails with what has changed.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }
}

impl ReadAt for File {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buf, offset)
    }

    #[cfg(windows)]
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(self, buf, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    buf = buf.get_mut(count..).unwrap_or_default();
                    offset = offset.saturating_add(count as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl ReadAt for [u8] {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let rest = start.and_then(|start| self.get(start..)).unwrap_or_default();
        let bytes = rest.get(..buf.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
}

impl ReadAt for Buffer {
    fn byte_len(&self) -> io::Result<u64> {
        self[..].byte_len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self[..].read_exact_at(buf, offset)
    }
}

macro_rules! read_at_through {
    ($pointer:ty) => {
        impl<R: ReadAt + ?Sized> ReadAt for $pointer {
            fn byte_len(&self) -> io::Result<u64> {
                (**self).byte_len()
            }

            fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
                (**self).read_exact_at(buf, offset)
            }

            fn check_unchanged(&self) -> Result<()> {
                (**self).check_unchanged()
            }
        }
    };
}

read_at_through!(&R);
read_at_through!(Arc<R>);

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{ErrorKind, Write};

    use super::ReadAt;
    use crate::Buffer;

    fn check(source: &impl ReadAt) {
        assert_eq!(source.byte_len().unwrap(), 5);
        let mut buf = [0; 3];
        source.read_exact_at(&mut buf, 2).unwrap();
        assert_eq!(buf, [3, 4, 5]);
        source.read_exact_at(&mut [], 5).unwrap();
        for offset in [3, 5, 6, 1 << 40] {
            let error = source.read_exact_at(&mut buf, offset).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{offset}");
        }
        source.check_unchanged().unwrap();
    }

    #[test]
    fn every_source_reads_the_same() {
        let bytes = [1, 2, 3, 4, 5];
        check(&&bytes[..]);
        check(&Buffer::from_vec(bytes.into()));
        let mut file: File = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        check(&file);
        check(&std::sync::Arc::new(file));
    }
}
