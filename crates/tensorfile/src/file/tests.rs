//! Files from each source, whole and in part, valid and malformed.

use std::cell::RefCell;
use std::io;
use std::path::Path;

use super::TensorFile;
use crate::{
    Buffer, Dtype, ErrorKind, HeaderOptions, Lookalike, ReadAt, Selection, SelectionFault,
    SourceFile, Tensor, Writer,
};

/// A file of `a` (I16 [2, 3]), `scalar` (F32), `none` (U8 [0, 4]) and `packed` (F4 [4]).
fn sample() -> Vec<u8> {
    let scalar = 1.5_f32.to_le_bytes();
    let mut writer = Writer::new();
    writer.add("a", Dtype::I16, &[2, 3], &[0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0]).unwrap();
    writer.add("scalar", Dtype::F32, &[], &scalar).unwrap();
    writer.add("none", Dtype::U8, &[0, 4], &[]).unwrap();
    writer.add("packed", Dtype::F4, &[4], &[0x21, 0x43]).unwrap();
    writer.to_bytes().unwrap()
}

/// A source that records which of its bytes were read.
#[derive(Debug)]
struct Counting<'a> {
    bytes: &'a [u8],
    reads: RefCell<Vec<(u64, usize)>>,
}

impl<'a> Counting<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, reads: RefCell::default() }
    }
}

impl ReadAt for Counting<'_> {
    fn byte_len(&self) -> io::Result<u64> {
        self.bytes.byte_len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.reads.borrow_mut().push((offset, buf.len()));
        self.bytes.read_exact_at(buf, offset)
    }
}

fn check(file: &TensorFile<impl ReadAt>) {
    assert_eq!(file.names().collect::<Vec<_>>(), ["a", "none", "packed", "scalar"]);
    assert_eq!((file.len(), file.is_empty(), file.metadata()), (4, false, None));
    let a = file.read("a").unwrap();
    assert_eq!((a.name(), a.dtype(), a.shape()), ("a", Dtype::I16, &[2, 3][..]));
    assert_eq!(a.as_slice::<i16>().unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(file.read("scalar").unwrap().as_slice::<f32>().unwrap(), [1.5]);
    assert_eq!(file.read("none").unwrap().bytes(), [0; 0]);
    assert_eq!(file.read("packed").unwrap().bytes(), [0x21, 0x43]);
    let select = |selection| {
        let part: Tensor = file.read_selection("a", &selection).unwrap();
        (part.shape().to_vec(), part.to_vec::<i16>().unwrap())
    };
    assert_eq!(select(Selection::all()), (vec![2, 3], vec![0, 1, 2, 3, 4, 5]));
    let columns = Selection::all().with_ranges(1, vec![2..3, 0..1]);
    assert_eq!(select(columns), (vec![2, 2], vec![2, 0, 5, 3]));
    assert_eq!(select(Selection::all().with_range(0, 1..1)), (vec![0, 3], vec![]));
    let half = file.read_selection("packed", &Selection::all().with_range(0, 2..4)).unwrap();
    assert_eq!(half.bytes(), [0x43]);
    let third = Selection::all().with_range(2, 0..1);
    let error = file.read_selection("a", &third).unwrap_err();
    let is_rank = matches!(error.kind(), ErrorKind::Selection(SelectionFault::Rank { .. }));
    assert!(is_rank && error.path() == Some(file.path()), "{error:?}");
}

#[test]
fn every_source_gives_the_same() {
    let bytes = sample();
    let in_memory = TensorFile::from_bytes(&bytes).unwrap();
    check(&in_memory);
    assert_eq!(in_memory.view("a").unwrap().as_slice::<u8>().ok(), None);
    assert_eq!(in_memory.view("a").unwrap().to_vec::<i16>().unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(in_memory.path(), Path::new("<memory>"));

    let buffer = Buffer::from_vec(bytes.clone());
    let shared = TensorFile::from_source("b", buffer, &HeaderOptions::default()).unwrap();
    check(&shared);
    assert_eq!(shared.tensor("packed").unwrap().bytes(), [0x21, 0x43]);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.safetensors");
    std::fs::write(&path, &bytes).unwrap();
    let on_disk = TensorFile::open(&path).unwrap();
    check(&on_disk);
    assert_eq!((on_disk.path(), on_disk.source().opened_bytes()), (&*path, bytes.len() as u64));
    let (source, header) = on_disk.into_parts();
    assert_eq!((source.path(), header.len()), (&*path, 4));
}

#[test]
fn opening_reads_the_header_and_nothing_else() {
    let text = r#"{"w":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}"#;
    let json = text.to_owned() + &" ".repeat(100_000 - text.len());
    let bytes = [&100_000_u64.to_le_bytes(), json.as_bytes(), &[7; 9]].concat();
    let options = HeaderOptions::default();
    let file = TensorFile::from_source("f", Counting::new(&bytes), &options).unwrap();
    assert_eq!(file.source().reads.take(), [(0, 8), (8, 100_000)]);
    file.read("w").unwrap();
    assert_eq!(file.source().reads.take(), [(100_008, 9)]);
    file.read_selection("w", &Selection::all().with_ranges(0, vec![7..8, 1..2, 3..5])).unwrap();
    assert_eq!(file.source().reads.take(), [(100_015, 1), (100_009, 4)]);
}

#[test]
fn nothing_past_the_length_is_read_where_the_length_is_refused() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let source = Counting::new(pointer);
    let error = TensorFile::from_source("f", &source, &HeaderOptions::default()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::LfsPointer { byte_len: 12345, .. }), "{error:?}");
    assert_eq!(source.reads.take(), [(0, 8), (0, pointer.len())]);
}

#[test]
fn files_that_are_none_are_named_for_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let open = |bytes: &[u8]| {
        let path = dir.path().join("f.safetensors");
        std::fs::write(&path, bytes).unwrap();
        let error = TensorFile::open(&path).unwrap_err();
        assert_eq!(error.path(), Some(&*path), "{error}");
        error.into_kind()
    };
    assert!(matches!(open(b""), ErrorKind::Empty));
    assert!(matches!(open(&[1, 2, 3]), ErrorKind::TooShort { byte_len: 3 }));
    let zip = open(b"PK\x03\x04\x14\x00\x00\x00\x08\x00");
    assert!(matches!(zip, ErrorKind::NotSafetensors { looks_like: Lookalike::Zip }));
    let html = open(b"<html><body>404</body></html>");
    assert!(matches!(html, ErrorKind::NotSafetensors { looks_like: Lookalike::Html, .. }));
    assert!(matches!(open(&[0xff; 64]), ErrorKind::HeaderPastEnd { header_len: u64::MAX, .. }));
    let cut = &sample()[..40];
    assert!(matches!(open(cut), ErrorKind::HeaderPastEnd { byte_len: 40, .. }));
    let folder = TensorFile::open(dir.path()).unwrap_err();
    assert!(matches!(folder.kind(), ErrorKind::NotARegularFile { .. }));
}

#[test]
fn a_file_that_shrank_is_an_error_naming_the_tensor() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.safetensors");
    let bytes = sample();
    std::fs::write(&path, &bytes).unwrap();
    let file = TensorFile::open(&path).unwrap();
    let short = bytes.len() as u64 - 1;
    std::fs::File::options().write(true).open(&path).unwrap().set_len(short).unwrap();
    let error = file.read("packed").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ReadPastEnd { byte_len, .. } if *byte_len == short));
    assert!(error.to_string().contains("f.safetensors: tensor \"packed\": bytes "), "{error}");
    let part = Selection::all().with_range(0, 2..4);
    let error = file.read_selection("packed", &part).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ReadPastEnd { .. }));
    // The remaining bytes may be the opened ones or not; it cannot be known.
    let error = file.read("scalar").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Changed { .. }));
    assert!(error.to_string().contains("f.safetensors: tensor \"packed\": changed "), "{error}");
    // SAFETY: nothing writes to the file again.
    #[expect(unsafe_code, reason = "that a changed file is not mapped is to be shown")]
    let error = unsafe { file.map() }.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Changed { .. }), "{error:?}");
    assert_eq!((error.path(), error.tensor()), (Some(&*path), Some("packed")));
}

#[test]
fn sources_that_fail_are_named_with_the_bytes_asked_for() {
    #[derive(Debug)]
    struct Broken;
    impl ReadAt for Broken {
        fn byte_len(&self) -> io::Result<u64> {
            Ok(1000)
        }
        fn read_exact_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
            Err(io::Error::other("the medium failed"))
        }
    }
    let error = TensorFile::from_source("f", Broken, &HeaderOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "f: cannot read bytes 0..8");
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("medium"));
}

#[test]
fn names_that_are_not_there_come_with_similar_ones() {
    let bytes = sample();
    let file = TensorFile::from_bytes(&bytes).unwrap();
    let error = file.read("model.scalar").unwrap_err();
    let message = r#"<memory>: tensor "model.scalar": not in this file; similar: "scalar""#;
    assert_eq!(error.to_string(), message);
    let error = file.view("b").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TensorNotFound { .. }), "{error:?}");
}

#[test]
fn files_cross_threads() {
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<TensorFile<SourceFile>>();
    assert_send_sync::<TensorFile<Buffer>>();
}
