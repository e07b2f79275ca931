//! Shapes, sizes and offsets that do not fit together, or not the file.

use super::{file, parse, refused, w};
use crate::ErrorKind;
use crate::header::{Header, HeaderOptions, TrailingBytes};

#[test]
fn rejects_shapes_that_do_not_fit_their_bytes() {
    let wraps = w("F32", "[4294967296,4294967296]", "[0,0]");
    let message =
        r#"tensor "w": shape [4294967296, 4294967296] of F32 overflows the address range"#;
    assert_refused!(&wraps, 0, ErrorKind::ShapeOverflow { .. }, message);
    let bits = w("U8", "[2305843009213693952]", "[0,2305843009213693952]");
    assert!(matches!(refused(parse(&bits, 0)), ErrorKind::ShapeOverflow { .. }));
    let undone = w("U8", "[4294967296,4294967296,0]", "[0,0]");
    assert!(matches!(refused(parse(&undone, 0)), ErrorKind::ShapeOverflow { .. }));
    assert_refused!(
        &w("F4", "[3]", "[0,2]"),
        2,
        ErrorKind::PartialByte { bits: 12, .. },
        r#"tensor "w": shape [3] of F4 is 12 bits, not a whole number of bytes"#
    );
    assert_refused!(
        &w("F32", "[1000,1000]", "[0,4]"),
        4,
        ErrorKind::SizeMismatch { found: 4, needed: 4_000_000, .. },
        r#"tensor "w": 4 bytes, shape [1000, 1000] of F32 needs 4000000"#
    );
}

#[test]
fn rejects_offsets_that_do_not_cover_the_data_once() {
    let two = |a: &str, b: &str| {
        let entry = |offsets| format!(r#"{{"dtype":"U8","shape":[4],"data_offsets":{offsets}}}"#);
        format!(r#"{{"v":{},"k":{}}}"#, entry(a), entry(b))
    };
    assert_refused!(
        &two("[0,4]", "[0,4]"),
        4,
        ErrorKind::Overlap { .. },
        r#"tensor "v": data offset 0 overlaps tensor "k", which ends at 4"#
    );
    assert_refused!(
        &two("[2,6]", "[0,4]"),
        6,
        ErrorKind::Overlap { .. },
        r#"tensor "v": data offset 2 overlaps tensor "k", which ends at 4"#
    );
    assert_refused!(
        &two("[12,16]", "[0,4]"),
        16,
        ErrorKind::Hole { begin: 12, expected: 4, .. },
        r#"tensor "v": data offset 12 leaves a hole: the bytes before it are used up to 4"#
    );
    assert!(matches!(
        refused(parse(&two("[4,8]", "[8,12]"), 12)),
        ErrorKind::Hole { expected: 0, .. }
    ));
    assert_refused!(
        &w("U8", "[4]", "[8,4]"),
        8,
        ErrorKind::OffsetsReversed { .. },
        r#"tensor "w": data offsets begin at 8 and end before, at 4"#
    );
    let last = format!("[{0},{0}]", u64::MAX);
    assert!(matches!(refused(parse(&w("U8", "[0]", &last), 0)), ErrorKind::Hole { .. }));
    let beyond = w("U8", "[4]", "[0,18446744073709551616]");
    assert!(matches!(refused(parse(&beyond, 4)), ErrorKind::InvalidTensor { .. }));
}

#[test]
fn rejects_files_shorter_or_longer_than_their_tensors() {
    let json = r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"c":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}}"#;
    let whole = json.len() + 16;
    for (data_len, first) in [(7, "b"), (4, "b"), (3, "a"), (0, "a")] {
        let message = format!(
            "tensor \"{first}\": truncated: expected a file of {whole} bytes, found {}; \
             this is the first tensor affected",
            json.len() + 8 + data_len
        );
        assert_refused!(json, data_len, ErrorKind::Truncated { .. }, message);
    }
    assert!(matches!(refused(parse(json, 45)), ErrorKind::TrailingBytes { count: 37, .. }));
    let allow = HeaderOptions { trailing_bytes: TrailingBytes::Allow, ..HeaderOptions::default() };
    let header = Header::from_bytes(&file(json, 45), &allow).unwrap();
    assert_eq!((header.trailing_bytes(), header.data_len()), (37, 8));
}

#[test]
fn sums_of_sizes_beyond_64_bits_are_truncation_not_a_panic() {
    // Eight times 2^61 - 1 bytes: each fits, their sum and the header do not fit in 64 bits.
    let size = (1_u64 << 61) - 1;
    let entries: Vec<_> = (0..8)
        .map(|i| {
            let (begin, end) = (i * size, (i + 1) * size);
            format!(r#""{i}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{begin},{end}]}}"#)
        })
        .collect();
    let json = format!("{{{}}}", entries.join(","));
    assert!(matches!(refused(parse(&json, 0)), ErrorKind::Truncated { expected: u64::MAX, .. }));
}
