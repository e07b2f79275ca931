//! What the machine can do without a loader: reads into huge pages, and copies.

use std::fs::File;
use std::io::{Error, Result};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;

use memmap2::{Advice, MmapMut};

/// Bytes of one read.
const PIECE: usize = 2 << 20;

/// Reads these files one after the other into new memory of huge pages, with this many threads.
///
/// # Errors
///
/// Fails where a file cannot be read.
pub fn read_into_huge_pages(paths: &[PathBuf], threads: usize) -> Result<MmapMut> {
    let files: Vec<File> = paths.iter().map(File::open).collect::<Result<_>>()?;
    let mut lens = Vec::new();
    for file in &files {
        lens.push(usize::try_from(file.metadata()?.len()).expect("a bench fits in memory"));
    }
    // Each file starts on a huge page.
    let places: Vec<usize> = lens.iter().map(|len| len.next_multiple_of(PIECE)).collect();
    let mut memory = MmapMut::map_anon(places.iter().sum::<usize>() + PIECE)?;
    memory.advise(Advice::HugePage)?;
    let skip = memory.as_ptr().addr().wrapping_neg() % PIECE;
    let mut pieces = Vec::new();
    let mut rest = &mut memory[skip..];
    for ((file, len), place) in files.iter().zip(lens).zip(places) {
        let (of_file, tail) = rest.split_at_mut(place);
        rest = tail;
        let of_file = of_file[..len].chunks_mut(PIECE).enumerate();
        pieces.extend(of_file.map(|(i, piece)| (file, (i * PIECE) as u64, piece)));
    }
    let queue = Mutex::new(pieces.into_iter());
    let worker = || -> Result<()> {
        while let Some((file, offset, piece)) = next(&queue) {
            file.read_exact_at(piece, offset)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let failed = |_| Error::other("a reader panicked");
        workers.into_iter().try_for_each(|worker| worker.join().map_err(failed)?)
    })?;
    Ok(memory)
}

/// Takes the next piece; the lock is held no longer.
fn next<T>(queue: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    queue.lock().expect("no worker panics with the queue").next()
}

/// Copies memory that is there to memory that is there, with this many threads.
pub fn copy(from: &[u8], to: &mut [u8], threads: usize) {
    let part = from.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        for (from, to) in from.chunks(part).zip(to.chunks_mut(part)) {
            scope.spawn(move || to.copy_from_slice(from));
        }
    });
}
