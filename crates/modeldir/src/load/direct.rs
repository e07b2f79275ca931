//! Reads of a file that bypass the page cache (`O_DIRECT`).

use std::fs::File;
use std::io;

use tensorfile::SourceFile;

use super::os;
use crate::plan::layout::{PAGE, in_memory};

/// If fewer bytes than this can go straight to their place, one read and a copy are cheaper than a
/// read for each end.
const MIN_IN_PLACE: u64 = 64 << 10;

/// A file opened for direct reads.
#[derive(Debug)]
pub(super) struct DirectFile {
    file: File,
    /// Positions, lengths and addresses are multiples of this, a power of two.
    align: u64,
}

impl DirectFile {
    /// Opens a file again for direct reads, or returns `None` if its file system has none.
    pub(super) fn open(file: &SourceFile) -> Option<Self> {
        let file = file.reopen_direct()?;
        // A page suits all common devices.
        let align = os::direct_alignment(&file, PAGE).filter(|align| *align <= PAGE)?;
        Some(Self { file, align })
    }

    /// Fills `destination`: straight where address and position allow it, the rest through
    /// `bounce`, which starts on a page. Fails if `bounce` is needed and shorter than two pages.
    pub(super) fn read_exact_at(
        &self,
        destination: &mut [u8],
        offset: u64,
        bounce: &mut [u8],
    ) -> io::Result<()> {
        let end = offset + destination.len() as u64;
        let (first, last) = (offset.next_multiple_of(self.align), end - end % self.align);
        let address = destination.as_ptr().addr() as u64;
        let is_congruent = address % self.align == offset % self.align;
        if !is_congruent || last < first + MIN_IN_PLACE {
            return self.read_by_way_of(bounce, destination, offset);
        }
        let (head, rest) = destination.split_at_mut(in_memory(first - offset));
        let (body, tail) = rest.split_at_mut(in_memory(last - first));
        self.read_by_way_of(bounce, head, offset)?;
        self.read_at_least(body, first, body.len())?;
        self.read_by_way_of(bounce, tail, last)
    }

    /// Reads whole blocks into `bounce` and copies the wanted bytes.
    fn read_by_way_of(
        &self,
        bounce: &mut [u8],
        mut destination: &mut [u8],
        mut offset: u64,
    ) -> io::Result<()> {
        let longest = bounce.len() as u64 - bounce.len() as u64 % self.align;
        if longest < 2 * self.align && !destination.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        while !destination.is_empty() {
            let skip = offset % self.align;
            let wanted = (skip + destination.len() as u64).min(longest);
            let block = bounce.get_mut(..in_memory(wanted.next_multiple_of(self.align)));
            let block = block.ok_or(io::ErrorKind::InvalidInput)?;
            let (skip, wanted) = (in_memory(skip), in_memory(wanted));
            self.read_at_least(block, offset - skip as u64, wanted)?;
            let (filled, rest) = destination.split_at_mut(wanted - skip);
            filled.copy_from_slice(block.get(skip..wanted).unwrap_or_default());
            offset += filled.len() as u64;
            destination = rest;
        }
        Ok(())
    }

    /// Reads until at least `needed` bytes of `buf` are filled: `buf` may reach past the end of the
    /// file. Position, length and address are multiples of a page.
    pub(super) fn read_at_least(
        &self,
        buf: &mut [u8],
        offset: u64,
        needed: usize,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < needed {
            let rest = buf.get_mut(done..).unwrap_or_default();
            match os::read_at(&self.file, rest, offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // Every read but the last of a file returns whole blocks.
            if done < needed && done as u64 % self.align != 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;
    use std::path::{Path, PathBuf};

    use super::DirectFile;
    use tempfile::TempDir;
    use tensorfile::{BufferMut, SourceFile};

    /// Folders that may lie on a file system with direct reads.
    fn folders() -> Vec<PathBuf> {
        let binary = std::env::current_exe().unwrap();
        let built = binary.parent().unwrap();
        vec![
            env!("CARGO_MANIFEST_DIR").into(),
            built.into(),
            "/var/tmp".into(),
            std::env::temp_dir(),
        ]
    }

    /// A file of 3 MiB and 77 bytes that has direct reads, and its bytes; if there is no place for
    /// one, says that this test has not been run.
    pub(in super::super) fn sample(test: &str) -> Option<(TempDir, SourceFile, Vec<u8>)> {
        let bytes: Vec<u8> = (0..(3 << 20) + 77_u32).map(|i| (i / 7 % 251) as u8).collect();
        let found = folders().iter().find_map(|folder| {
            let dir = tempfile::tempdir_in(folder).ok()?;
            let file = write(dir.path(), &bytes);
            DirectFile::open(&file).is_some().then_some((dir, file))
        });
        let Some((dir, file)) = found else {
            // Not by a macro, whose text nobody sees of a test that passes.
            let message = format!("{test}: NOT RUN, no direct reads in any of {:?}\n", folders());
            std::io::stderr().write_all(message.as_bytes()).unwrap();
            return None;
        };
        Some((dir, file, bytes))
    }

    fn write(dir: &Path, bytes: &[u8]) -> SourceFile {
        let path = dir.join("sample");
        std::fs::write(&path, bytes).unwrap();
        SourceFile::open(&path).unwrap()
    }

    fn buffer(len: usize) -> BufferMut {
        BufferMut::with_len(len).unwrap()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn some_folder_has_direct_reads() {
        assert!(sample("every test of direct reads").is_some(), "{:?}", folders());
    }

    #[test]
    fn what_needs_no_bounce_is_read_without_and_the_rest_is_refused() {
        let Some((_dir, file, bytes)) = sample("what_needs_no_bounce") else { return };
        let direct = DirectFile::open(&file).unwrap();
        let mut memory = buffer(4 << 20);
        let to = &mut memory.as_mut_slice()[..1 << 20];
        direct.read_exact_at(to, 1 << 20, &mut []).unwrap();
        assert!(*to == bytes[1 << 20..2 << 20]);
        for (offset, len) in [(1, 1 << 20), (0, (1 << 20) + 1), (4096, 100), (5, 1)] {
            let to = &mut memory.as_mut_slice()[..len];
            let error = direct.read_exact_at(to, offset, &mut []).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{offset} {len}");
        }
    }

    #[test]
    fn any_range_at_any_address_is_read_exactly() {
        let Some((_dir, file, bytes)) = sample("any_range_at_any_address") else { return };
        let direct = DirectFile::open(&file).unwrap();
        let (mut memory, mut bounce) = (buffer(4 << 20), buffer(1 << 20));
        let ends = [0, 1, 511, 512, 4095, 4096, 4097, 100_000, (1 << 20) + 5, bytes.len()];
        for start in ends {
            for end in ends.into_iter().filter(|end| *end >= start) {
                for address in [0, 1, 64, start % 4096] {
                    let to = &mut memory.as_mut_slice()[address..][..end - start];
                    to.fill(0xee);
                    direct.read_exact_at(to, start as u64, bounce.as_mut_slice()).unwrap();
                    assert!(*to == bytes[start..end], "{start}..{end} at {address}");
                }
            }
        }
    }

    #[test]
    fn the_end_of_the_file_is_an_error() {
        let Some((_dir, file, bytes)) = sample("the_end_of_the_file") else { return };
        let direct = DirectFile::open(&file).unwrap();
        let (mut memory, mut bounce) = (buffer(4 << 20), buffer(1 << 20));
        for (offset, len) in [(0, bytes.len() + 1), (bytes.len(), 1), (1 << 30, 1 << 20)] {
            let to = &mut memory.as_mut_slice()[..len];
            let error = direct.read_exact_at(to, offset as u64, bounce.as_mut_slice());
            assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
        }
    }
}
