//! Reads the header of a file from any source.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use crate::format::PREFIX_LEN;
use crate::header::explain;
use crate::lookalike::SNIFF_LEN;
use crate::source::read_error;
use crate::{Error, ErrorKind, Header, HeaderOptions, ReadAt, Result, reserve, zeros};

/// Reads the length of the JSON, then exactly the JSON; explains a refusal by the file's first
/// bytes.
pub(super) fn read_header(
    source: &impl ReadAt,
    byte_len: u64,
    options: &HeaderOptions,
) -> Result<Header> {
    let read = |buf: &mut [u8], offset| {
        let len = buf.len();
        let read = source.read_exact_at(buf, offset);
        read.map_err(|error| read_error(source, len, offset, error))
    };
    let parse = || {
        let mut prefix = [0; PREFIX_LEN];
        if byte_len >= PREFIX_LEN as u64 {
            read(&mut prefix, 0)?;
        }
        let json_len = Header::json_len(prefix, byte_len, options)?;
        let mut json = reserve::list(json_len)?;
        json.resize(json_len, 0);
        read(&mut json, PREFIX_LEN as u64)?;
        Header::parse(&json, byte_len, options)
    };
    parse().map_err(|error: Error| {
        let mut first = [0; SNIFF_LEN];
        let len = usize::try_from(byte_len).unwrap_or(SNIFF_LEN).min(SNIFF_LEN);
        let first = first.get_mut(..len).unwrap_or_default();
        match read(first, 0) {
            Ok(()) => with_zeros(explain(error, first, byte_len), byte_len, read),
            Err(_) => error,
        }
    })
}

/// The same error; one that begins with zeros counts all of them.
fn with_zeros<E>(
    error: Error,
    byte_len: u64,
    read: impl Fn(&mut [u8], u64) -> Result<(), E>,
) -> Error {
    if !matches!(error.kind(), ErrorKind::LeadingZeros { .. }) {
        return error;
    }
    let zero_bytes = zeros::count_in(byte_len, read);
    ErrorKind::LeadingZeros { zero_bytes, byte_len }.into()
}
