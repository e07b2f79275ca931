//! Reads JSON files; no other module does. Checks a file before parsing: its kind, size, encoding.

// Applies to the modules below too.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod deep;
mod duplicates;
mod error;
mod fields;
mod non_finite;
mod parse;
mod replace;

use std::io::Read;
use std::path::Path;

use tensorfile::{LfsPointer, Limit, LimitOn, PathText, Remedy, SourceFile, reserve};

use crate::{Error, ErrorKind, Result};

pub use error::JsonError;

pub(crate) use fields::{Fields, float, kind};
pub(crate) use non_finite::blank_non_finite;
pub(crate) use parse::{from_str, parse, parse_object, start_of, syntax_error};
pub(crate) use replace::replace_strings;

/// The default limit for a JSON file: 64 MiB.
pub(crate) const DEFAULT_MAX_BYTES: u64 = 64 << 20;

/// The byte-order mark.
const MARK: char = '\u{feff}';

/// The limit for a file in bytes, and what raises it, if anything does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MaxBytes {
    limit: u64,
    remedy: Option<Remedy>,
}

impl MaxBytes {
    /// The limit for calls without options.
    pub(crate) const FIXED: Self = Self { limit: DEFAULT_MAX_BYTES, remedy: None };

    /// The limit for an index.
    pub(crate) const fn of_index(max: u64) -> Self {
        Self { limit: max, remedy: Some(Remedy::Raise("OpenOptions::max_index_bytes")) }
    }

    /// The limit for the other JSON files of a directory.
    pub(crate) const fn of_json(max: u64) -> Self {
        Self { limit: max, remedy: Some(Remedy::Raise("OpenOptions::max_json_bytes")) }
    }

    /// Refuses a longer file.
    fn check(self, found: u64) -> Result<(), Limit> {
        let Self { limit, remedy } = self;
        if found > limit {
            return Err(Limit { what: LimitOn::FileBytes, limit, found, remedy });
        }
        Ok(())
    }
}

/// The text of a regular file, without its byte-order mark. Never blocks on a FIFO.
pub(crate) fn read(path: &Path, max: MaxBytes) -> Result<String> {
    let mut text = read_with_mark(path, max)?;
    if text.starts_with(MARK) {
        text.remove(0);
    }
    Ok(text)
}

/// As [`read`], with the byte-order mark if there is one.
pub(crate) fn read_with_mark(path: &Path, max: MaxBytes) -> Result<String> {
    let file = SourceFile::open(path)?;
    max.check(file.opened_bytes()).map_err(|limit| ErrorKind::Limit(limit).at(path))?;
    let bytes = read_bytes(path, &file)?;
    into_text(bytes).map_err(|error| error.at(path))
}

/// The text that these bytes hold, with its byte-order mark.
fn into_text(bytes: Vec<u8>) -> Result<String> {
    refuse_other(&bytes)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| not_utf8(error.as_bytes(), error.utf8_error().valid_up_to()))?;
    Ok(text)
}

/// [`read`], or `None` if the file does not exist.
pub(crate) fn read_if_there(path: &Path, max: MaxBytes) -> Result<Option<String>> {
    let is_absence =
        |kind: &ErrorKind| matches!(kind, ErrorKind::File(tensorfile::ErrorKind::NotFound));
    match read(path, max) {
        Err(error) if is_absence(error.kind()) => Ok(None),
        read => read.map(Some),
    }
}

/// The text of `bytes`, without its byte-order mark.
///
/// Empty input, a Git LFS pointer and bytes that are not UTF-8 are errors.
pub(crate) fn text(bytes: &[u8]) -> Result<&str> {
    refuse_other(bytes)?;
    let text = std::str::from_utf8(bytes).map_err(|e| not_utf8(bytes, e.valid_up_to()))?;
    Ok(without_mark(text))
}

/// The text after its byte-order mark.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// Prefixes each note with the name of the file at `path`.
pub(crate) fn notes_of(path: &Path, notes: Vec<String>) -> Vec<String> {
    let name = PathText(path.file_name().unwrap_or(path.as_os_str()).as_ref());
    notes.into_iter().map(|note| format!("{name}: {note}")).collect()
}

/// Refuses an empty file and a Git LFS pointer, whatever the file should contain.
pub(crate) fn check_is_there(path: &Path) -> Result<()> {
    let file = SourceFile::open(path)?;
    let mut first = [0; 512];
    let len = usize::try_from(file.opened_bytes()).unwrap_or(usize::MAX).min(first.len());
    let first = first.get_mut(..len).unwrap_or_default();
    file.read_exact_at(first, 0)?;
    refuse_other(first).map_err(|error| error.at(path))
}

/// Refuses empty input and the start of a Git LFS pointer.
fn refuse_other(first: &[u8]) -> Result<()> {
    if first.is_empty() {
        return Err(tensorfile::ErrorKind::Empty.into());
    }
    match LfsPointer::parse(first) {
        None => Ok(()),
        Some(LfsPointer { oid, byte_len, .. }) => {
            Err(tensorfile::ErrorKind::LfsPointer { oid, byte_len }.into())
        }
    }
}

/// The bytes of a file, as many as it had when it was opened; an error if they cannot be allocated.
fn read_bytes(path: &Path, file: &SourceFile) -> Result<Vec<u8>> {
    let len = usize::try_from(file.opened_bytes()).unwrap_or(usize::MAX);
    let mut bytes = reserve::list(len).map_err(|none| Error::from(none).at(path))?;
    // `read_to_end` does not zero the buffer first, which would take as long as the read.
    let read = file.file().take(file.opened_bytes()).read_to_end(&mut bytes);
    if !matches!(read, Ok(read) if read == len) {
        bytes.resize(len, 0);
        file.read_exact_at(&mut bytes, 0)?;
    }
    Ok(bytes)
}

/// The error for bytes that are UTF-8 only up to `valid_up_to`.
fn not_utf8(bytes: &[u8], valid_up_to: usize) -> JsonError {
    let valid = bytes.get(..valid_up_to).unwrap_or_default();
    let (line, column) = parse::position(&String::from_utf8_lossy(valid), valid_up_to);
    JsonError::NotUtf8 { line, column }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tensorfile::{Limit, LimitOn};

    use super::{MaxBytes, SourceFile, read, read_bytes, text};
    use crate::ErrorKind;

    const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
        oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

    #[test]
    fn says_what_a_file_is_that_is_no_text() {
        let cases: [(&[u8], &str); 5] = [
            (b"", "x.json: empty file (0 bytes)"),
            (POINTER.as_bytes(), "x.json: is a Git LFS pointer, not the file itself: 12345 bytes"),
            (b"{\n\"a\":\"\xff\"}", "x.json: line 2 column 6: not UTF-8"),
            (b"\xff\xfe{\0", "x.json: line 1 column 1: not UTF-8"),
            ("é\u{20ac}\n漢\u{1f600}".as_bytes().split_last().unwrap().1, "line 2 column 2"),
        ];
        for (bytes, message) in cases {
            let error = text(bytes).unwrap_err().at("x.json").to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn reads_a_file_without_its_byte_order_mark() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        fs::write(&path, "\u{feff}{}\r\n").unwrap();
        assert_eq!(read(&path, MaxBytes::of_json(10)).unwrap(), "{}\r\n");
    }

    #[test]
    fn reads_as_many_bytes_as_the_file_had_when_it_was_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        fs::write(&path, "{}").unwrap();
        let file = SourceFile::open(&path).unwrap();
        fs::write(&path, "{}longer").unwrap();
        assert_eq!(read_bytes(&path, &file).unwrap(), b"{}");
        let file = SourceFile::open(&path).unwrap();
        fs::write(&path, "{}").unwrap();
        let error = read_bytes(&path, &file).unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ErrorKind::File(tensorfile::ErrorKind::ReadPastEnd { range, .. })
                    if *range == (0..8)
            ),
            "{error:?}"
        );
    }

    #[test]
    fn refuses_folders_missing_files_and_long_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        let read_to = |max| read(&path, max).unwrap_err();
        let read = || read_to(MaxBytes::of_json(2));
        let kind = || read().into_kind();
        assert!(matches!(kind(), ErrorKind::File(tensorfile::ErrorKind::NotFound)));
        fs::create_dir(&path).unwrap();
        assert!(matches!(kind(), ErrorKind::File(tensorfile::ErrorKind::NotARegularFile { .. })));
        fs::remove_dir(&path).unwrap();
        fs::write(&path, "{ }").unwrap();
        assert_eq!(read().path(), Some(&*path));
        let what = LimitOn::FileBytes;
        assert!(
            matches!(kind(), ErrorKind::Limit(Limit { what: of, found: 3, limit: 2, .. }) if of == what)
        );
        assert!(read().to_string().contains("(OpenOptions::max_json_bytes raises it)"));
        let fixed = MaxBytes { limit: 2, ..MaxBytes::FIXED };
        assert!(read_to(fixed).to_string().ends_with("config.json: 3 bytes, the limit is 2"));
    }
}
