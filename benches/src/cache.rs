//! What the page cache holds of a model: all of it, nothing, or every other piece.

use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use memmap2::{Mmap, MmapMut};
use rustix::fs::{Advice, fadvise, fsync};

/// Pieces of this length are read to warm a file.
const PIECE: usize = 16 << 20;

/// Makes the page cache forget these files; returns the bytes that it holds all the same.
///
/// # Errors
///
/// Fails where a file cannot be opened or written back.
pub fn drop_cache(paths: &[PathBuf]) -> Result<u64> {
    let mut left = 0;
    for path in paths {
        let file = File::open(path)?;
        // Pages that are not on the disk yet are not dropped.
        fsync(&file)?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
        left += resident(&file)?;
    }
    Ok(left)
}

/// Reads these files, so that the page cache holds them.
///
/// # Errors
///
/// Fails where a file cannot be read.
pub fn warm_cache(paths: &[PathBuf]) -> Result<()> {
    let mut buffer = MmapMut::map_anon(PIECE)?;
    for path in paths {
        let file = File::open(path)?;
        let mut offset = 0;
        loop {
            match file.read_at(&mut buffer, offset)? {
                0 => break,
                count => offset += count as u64,
            }
        }
    }
    Ok(())
}

/// Reads every file of a directory, so that the page cache holds it.
pub fn warm(dir: &Path) {
    let entries = dir.read_dir().expect("a directory of the bench");
    let paths: Vec<_> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
    warm_cache(&paths).expect("readable files");
}

/// Makes the page cache hold every other piece of these files, of 64 MiB each, from the first on.
///
/// # Errors
///
/// Fails where a file cannot be read.
pub fn warm_half(paths: &[PathBuf]) -> Result<()> {
    drop_cache(paths)?;
    let mut buffer = MmapMut::map_anon(PIECE)?;
    for path in paths {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        // Or the system reads on into the next piece.
        fadvise(&file, 0, None, Advice::Random)?;
        let step = 4 * PIECE as u64;
        for start in (0..len).step_by(2 * 4 * PIECE) {
            for offset in (start..len.min(start + step)).step_by(PIECE) {
                file.read_at(&mut buffer, offset)?;
            }
        }
    }
    Ok(())
}

/// Bytes of a file that the page cache holds.
fn resident(file: &File) -> Result<u64> {
    if file.metadata()?.len() == 0 {
        return Ok(0);
    }
    // SAFETY: nothing writes to the bench's own files while it runs, and no byte is touched.
    let map = unsafe { Mmap::map(file)? };
    let mut pages = vec![0_u8; map.len().div_ceil(4096)];
    let (start, len, to) = (map.as_ptr().cast_mut().cast(), map.len(), pages.as_mut_ptr());
    // SAFETY: the range is the whole of a mapping, and there is a byte for each of its pages.
    if unsafe { libc::mincore(start, len, to) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(pages.iter().filter(|page| **page & 1 == 1).count() as u64 * 4096)
}
