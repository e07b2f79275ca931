//! Bytes in memory that tensors share: owned, or mapped from a file.

use std::fmt;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::{Mmap, MmapMut};

use crate::{ErrorKind, Result};

/// Owned buffers start at a multiple of this, so that every element type can be cast in place.
const ALIGN: usize = 64;

/// Owned buffers of at least this length are anonymous mappings.
const MAP_FROM: usize = 1 << 20;

/// The size of a huge page. Buffers of at least this length start on one.
pub const HUGE_PAGE: usize = 2 << 20;

/// Bytes that cannot change, owned or mapped from a file.
///
/// Cloning copies a pointer; dropping the last clone frees the memory.
///
/// ```
/// use tensorfile::{Buffer, BufferMut};
///
/// let mut filling = BufferMut::with_len(3)?;
/// filling.as_mut_slice().copy_from_slice(b"abc");
/// let buffer: Buffer = filling.freeze();
/// let shared = buffer.clone();
/// assert_eq!(&shared[..], b"abc");
/// assert_eq!(shared.as_ptr(), buffer.as_ptr());
/// # Ok::<(), tensorfile::Error>(())
/// ```
#[derive(Clone)]
pub struct Buffer(Arc<Backing>);

impl Buffer {
    /// A buffer of these bytes, without a copy.
    ///
    /// It is aligned as the vector is, which may be too little for wide elements;
    /// [`BufferMut::with_len`] allocates aligned memory.
    #[must_use]
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        Self(Arc::new(Backing { memory: Memory::Heap(bytes), start: 0, len }))
    }

    /// The bytes of a mapped file.
    pub(crate) fn from_file_map(map: Mmap) -> Self {
        let len = map.len();
        Self(Arc::new(Backing { memory: Memory::File(map), start: 0, len }))
    }

    /// The same memory, to fill again.
    ///
    /// # Errors
    ///
    /// Returns the buffer unchanged if a clone of it exists, or if it is a mapped file.
    pub fn into_mut(self) -> std::result::Result<BufferMut, Self> {
        match Arc::try_unwrap(self.0) {
            Ok(backing) if matches!(backing.memory, Memory::File(_)) => {
                Err(Self(Arc::new(backing)))
            }
            Ok(backing) => Ok(BufferMut(backing)),
            Err(shared) => Err(Self(shared)),
        }
    }

    /// Reads these bytes of a mapped file into memory, so that touching them later does no I/O.
    ///
    /// If bytes cannot be read, because the file was shortened or its medium fails, this is an
    /// error here and not a signal. Does nothing for owned bytes. Blocks until all are read.
    ///
    /// # Errors
    ///
    /// The operating system's error; [`io::ErrorKind::Unsupported`] if it has no such call (before
    /// Linux 5.14, other systems), and [`io::ErrorKind::InvalidInput`] for a range past the end.
    pub fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let inside = range.start <= range.end && range.end <= self.len();
        match &self.0.memory {
            _ if !inside => Err(io::ErrorKind::InvalidInput.into()),
            Memory::File(map) if !range.is_empty() => populate(map, &range),
            _ => Ok(()),
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe("Buffer", f)
    }
}

/// Owned bytes to fill; [`freeze`](Self::freeze) turns them into a [`Buffer`].
///
/// They are zero at first, and start at a multiple of 64 bytes. From 1 MiB on they are an anonymous
/// mapping, whose pages are not touched before they are written to. From 2 MiB on they start on a
/// huge page, which Linux is advised to use.
pub struct BufferMut(Backing);

impl BufferMut {
    /// A buffer of `len` zero bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`], whatever the length; it never aborts.
    pub fn with_len(len: usize) -> Result<Self, ErrorKind> {
        let backing = if len < MAP_FROM { Backing::heap(len) } else { Backing::anonymous(len) };
        backing.map(Self).ok_or(ErrorKind::OutOfMemory { byte_len: len })
    }

    /// The number of bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The bytes; several threads can fill disjoint parts of them.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }

    /// The same bytes as a [`Buffer`], without a copy.
    #[must_use]
    pub fn freeze(self) -> Buffer {
        Buffer(Arc::new(self.0))
    }
}

impl fmt::Debug for BufferMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe("BufferMut", f)
    }
}

/// Memory and the used part of it: the bytes before `start` are for alignment.
struct Backing {
    memory: Memory,
    start: usize,
    len: usize,
}

enum Memory {
    Heap(Vec<u8>),
    Anonymous(MmapMut),
    File(Mmap),
}

impl Backing {
    /// Small memory from the allocator, or `None` if that fails.
    fn heap(len: usize) -> Option<Self> {
        let mut bytes = Vec::new();
        let padded = len.checked_add(ALIGN - 1)?;
        bytes.try_reserve_exact(padded).ok()?;
        bytes.resize(padded, 0);
        let start = padding(bytes.as_ptr().addr(), ALIGN);
        Some(Self { memory: Memory::Heap(bytes), start, len })
    }

    /// Large memory from the operating system, or `None` if that fails.
    fn anonymous(len: usize) -> Option<Self> {
        let spare = if len < HUGE_PAGE { 0 } else { HUGE_PAGE };
        let map = MmapMut::map_anon(len.checked_add(spare)?).ok()?;
        let start = if spare == 0 { 0 } else { padding(map.as_ptr().addr(), HUGE_PAGE) };
        ask_for_huge_pages(&map, start, len);
        Some(Self { memory: Memory::Anonymous(map), start, len })
    }

    fn bytes(&self) -> &[u8] {
        let all: &[u8] = match &self.memory {
            Memory::Heap(bytes) => bytes,
            Memory::Anonymous(map) => map,
            Memory::File(map) => map,
        };
        &all[self.start..][..self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let all: &mut [u8] = match &mut self.memory {
            Memory::Heap(bytes) => bytes,
            Memory::Anonymous(map) => map,
            Memory::File(_) => unreachable!("a BufferMut is made of owned memory only"),
        };
        &mut all[self.start..][..self.len]
    }

    fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.memory {
            Memory::Heap(_) => "heap",
            Memory::Anonymous(_) => "anonymous map",
            Memory::File(_) => "file map",
        };
        f.debug_struct(name)
            .field("kind", &format_args!("{kind}"))
            .field("byte_len", &self.len)
            .finish()
    }
}

/// Bytes from `addr` to the next multiple of `align`, a power of two.
const fn padding(addr: usize, align: usize) -> usize {
    addr.wrapping_neg() & (align - 1)
}

/// Requests huge pages for those that are used completely; others would waste memory.
///
/// This is advice: if it is refused, filling the buffer is slower.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(map: &MmapMut, start: usize, len: usize) {
    let whole = len - len % HUGE_PAGE;
    if whole > 0 {
        map.advise_range(memmap2::Advice::HugePage, start, whole).ok();
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_map: &MmapMut, _start: usize, _len: usize) {}

#[cfg(target_os = "linux")]
fn populate(map: &Mmap, range: &Range<usize>) -> io::Result<()> {
    loop {
        match map.advise_range(memmap2::Advice::PopulateRead, range.start, range.len()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(io::ErrorKind::Unsupported.into());
            }
            done => return done,
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn populate(_map: &Mmap, _range: &Range<usize>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests;
