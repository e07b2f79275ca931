//! Explains a refused header by the kind of the file.

use crate::format::PREFIX_LEN;
use crate::limit::LimitOn;
use crate::lookalike::{LfsPointer, Lookalike};
use crate::{Error, ErrorKind, zeros};

/// The same error, or that of a file of another kind. `first` are the first bytes of a file of
/// `byte_len` bytes.
///
/// Only errors that a file of another kind can cause are replaced. Zeros are counted in `first`.
pub(crate) fn explain(error: Error, first: &[u8], byte_len: u64) -> Error {
    let is_of_text = match error.kind() {
        ErrorKind::TooShort { .. }
        | ErrorKind::HeaderPastEnd { .. }
        | ErrorKind::HeaderNotUtf8 { .. }
        | ErrorKind::HeaderJson { .. } => true,
        ErrorKind::Limit(limit) => limit.what == LimitOn::HeaderBytes,
        _ => false,
    };
    if !is_of_text {
        return error;
    }
    let zero_bytes = zeros::count(first);
    if matches!(error.kind(), ErrorKind::HeaderJson { .. }) && zero_bytes >= PREFIX_LEN as u64 {
        return ErrorKind::LeadingZeros { zero_bytes, byte_len }.into();
    }
    if let Some(LfsPointer { oid, byte_len }) = LfsPointer::parse(first) {
        return ErrorKind::LfsPointer { oid, byte_len }.into();
    }
    match Lookalike::of(first) {
        Lookalike::Unknown => error,
        looks_like => ErrorKind::NotSafetensors { looks_like }.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::explain;
    use crate::limit::{Limit, LimitOn};
    use crate::{Error, ErrorKind};

    const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n\
        oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

    fn explained(kind: &ErrorKind, first: &[u8]) -> ErrorKind {
        explain(Error::from(kind.clone()), first, first.len() as u64).into_kind()
    }

    #[test]
    fn only_errors_of_the_header_text_are_explained() {
        let past_end = ErrorKind::HeaderPastEnd { header_len: 9, byte_len: 8 };
        let pointer = explained(&past_end, POINTER);
        assert!(matches!(pointer, ErrorKind::LfsPointer { byte_len: 12345, .. }));
        assert!(matches!(explained(&past_end, &[0; 9]), ErrorKind::HeaderPastEnd { .. }));
        let trailing = ErrorKind::TrailingBytes { count: 1 };
        assert!(matches!(explained(&trailing, b"PK\x03\x04"), ErrorKind::TrailingBytes { .. }));
    }

    #[test]
    fn zeros_in_place_of_the_length_are_counted() {
        let text = ErrorKind::HeaderJson { line: 1, column: 0, message: "EOF".into() };
        for (first, expected) in [(&[0; 8][..], Some(8)), (b"\0\0\0\0\0\0\0\0\0{", Some(9))] {
            let found = match explained(&text, first) {
                ErrorKind::LeadingZeros { zero_bytes, byte_len } => {
                    assert_eq!(byte_len, first.len() as u64);
                    Some(zero_bytes)
                }
                _ => None,
            };
            assert_eq!(found, expected, "{first:?}");
        }
        let seven = explained(&text, b"\0\0\0\0\0\0\0\x01");
        assert!(matches!(seven, ErrorKind::HeaderJson { .. }), "{seven:?}");
    }

    #[test]
    fn of_limits_only_that_of_the_header_is_explained() {
        let beyond = |what| ErrorKind::Limit(Limit { what, limit: 1, found: 2, remedy: None });
        let long = explained(&beyond(LimitOn::HeaderBytes), POINTER);
        assert!(matches!(long, ErrorKind::LfsPointer { .. }));
        let many = explained(&beyond(LimitOn::Tensors), POINTER);
        assert!(matches!(many, ErrorKind::Limit(_)));
    }
}
