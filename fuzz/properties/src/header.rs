//! The header: the same result however its bytes come, and tensors that fit together.

use std::io;
use std::path::Path;

use tensorfile::{
    Error, ErrorKind, Header, HeaderOptions, ReadAt, TensorFile, TensorInfo, TrailingBytes,
};

/// Checks the header of a file.
///
/// # Errors
///
/// Says what does not hold.
pub fn header(file: &[u8]) -> Result<(), String> {
    let path = Path::new("input.safetensors");
    let strict = HeaderOptions::default();
    let at_path = |error: Error| error.at(path);
    let whole = Header::from_bytes(file, &strict).map_err(at_path);
    let piecemeal = TensorFile::from_source(path, Piecemeal(file), &strict);
    same("in pieces", &whole, &piecemeal.map(|file| file.header().clone()))?;
    let in_memory = TensorFile::from_source(path, file, &strict);
    same("in memory", &whole, &in_memory.map(|file| file.header().clone()))?;
    if let Ok(header) = &whole {
        covers(header, file)?;
    }

    let lenient = HeaderOptions { trailing_bytes: TrailingBytes::Allow, ..strict };
    match (whole, Header::from_bytes(file, &lenient).map_err(at_path)) {
        (Ok(strict), Ok(lenient)) if strict == lenient => Ok(()),
        (Err(strict), Err(lenient)) if text(&strict) == text(&lenient) => Ok(()),
        (Err(strict), Ok(lenient)) => match strict.kind() {
            ErrorKind::TrailingBytes { count } => {
                let count = usize::try_from(*count).map_err(|error| error.to_string())?;
                covers(&lenient, &file[..file.len() - count])
            }
            _ => Err(format!("with trailing bytes it is taken, strictly: {strict:?}")),
        },
        (strict, lenient) => Err(format!("strict: {strict:?}, with trailing bytes: {lenient:?}")),
    }
}

/// Checks that the tensors lie in the data one after the other, without a byte between or left over.
fn covers(header: &Header, file: &[u8]) -> Result<(), String> {
    let mut ranges: Vec<_> = header.tensors().iter().map(TensorInfo::file_range).collect();
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut at = header.data_start();
    for range in ranges {
        if range.start != at || range.end < at {
            return Err(format!("bytes {range:?} follow byte {at}"));
        }
        at = range.end;
    }
    let end = u64::try_from(file.len()).map_err(|error| error.to_string())?;
    let names = header.tensors().windows(2).all(|pair| pair[0].name() < pair[1].name());
    match at == end && names {
        true => Ok(()),
        false => Err(format!("the tensors end at {at}, the file at {end}; names ascend: {names}")),
    }
}

/// Fails unless both are the same header, or the same error.
fn same(
    way: &str,
    one: &Result<Header, Error>,
    other: &Result<Header, Error>,
) -> Result<(), String> {
    match (one, other) {
        (Ok(one), Ok(other)) if one == other => Ok(()),
        (Err(one), Err(other)) if text(one) == text(other) => Ok(()),
        _ => Err(format!("by slice: {one:?}, {way}: {other:?}")),
    }
}

/// An error as it is shown, which must name the file and be no longer than a few lines.
fn text(error: &Error) -> String {
    let text = error.to_string();
    assert!(text.contains("input.safetensors"), "names no file: {text}");
    assert!(text.len() < 4096 && !text.chars().any(char::is_control), "shown as {text:?}");
    text
}

/// A source that copies its bytes one by one.
struct Piecemeal<'a>(&'a [u8]);

impl ReadAt for Piecemeal<'_> {
    fn byte_len(&self) -> io::Result<u64> {
        self.0.byte_len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        (offset..).zip(buf.chunks_mut(1)).try_for_each(|(at, byte)| self.0.read_exact_at(byte, at))
    }
}
