//! Fails the first call to a source, then the second, and so on: each is an error that names the
//! file, until no call fails and the result is that without a fault.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicUsize, Ordering};

use tensorfile::{Dtype, Error, HeaderOptions, ReadAt, Selection, TensorFile, Writer};

/// Bytes in memory, one call to which fails.
struct Failing<'a> {
    bytes: &'a [u8],
    /// Calls before that one.
    left: AtomicUsize,
    kind: ErrorKind,
}

impl Failing<'_> {
    fn call(&self) -> io::Result<()> {
        match self.left.fetch_sub(1, Ordering::Relaxed) {
            1 => Err(self.kind.into()),
            _ => Ok(()),
        }
    }
}

impl ReadAt for Failing<'_> {
    fn byte_len(&self) -> io::Result<u64> {
        self.call()?;
        self.bytes.byte_len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.call()?;
        self.bytes.read_exact_at(buf, offset)
    }
}

/// Opens, reads a tensor whole and in scattered parts; returns all bytes read.
fn used(source: Failing<'_>) -> Result<Vec<u8>, Error> {
    let file = TensorFile::from_source("m.safetensors", source, &HeaderOptions::default())?;
    let mut bytes = file.read("w")?.bytes().to_vec();
    let columns = Selection::all().with_range(1, 0..3);
    bytes.extend_from_slice(file.read_selection("w", &columns)?.bytes());
    Ok(bytes)
}

#[test]
fn the_nth_call_that_fails_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let data: Vec<u8> = (0..120_000_u32).map(|i| (i % 251) as u8).collect();
    let mut writer = Writer::new();
    writer.add("v", Dtype::U8, &[5], &[1, 2, 3, 4, 5]).unwrap();
    writer.add("w", Dtype::U8, &[3, 40_000], &data).unwrap();
    writer.save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let source = |left, kind| Failing { bytes: &bytes, left: AtomicUsize::new(left), kind };
    let right = used(source(usize::MAX, ErrorKind::Other)).unwrap();
    for kind in [ErrorKind::Other, ErrorKind::UnexpectedEof, ErrorKind::Interrupted] {
        let mut faults = 0;
        let last = (1..).find_map(|n| match used(source(n, kind)) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                faults += 1;
                assert_eq!(error.path(), Some("m.safetensors".as_ref()), "call {n}: {error}");
                None
            }
        });
        assert!(last.is_some_and(|bytes| bytes == right), "{kind:?}");
        // The length, two reads of the header, one of the tensor, one of each row.
        assert_eq!(faults, 7, "{kind:?}");
    }
}
