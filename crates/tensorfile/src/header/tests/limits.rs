//! Lengths and limits: the last accepted byte and the first refused one.

use super::{file, read, refused};
use crate::{Error, ErrorKind, Header, HeaderOptions, LimitOn};

#[test]
fn rejects_lengths_before_anything_is_read() {
    assert!(matches!(refused(read(&[])), ErrorKind::Empty));
    assert!(matches!(refused(read(&[0; 7])), ErrorKind::TooShort { byte_len: 7, .. }));
    assert!(matches!(refused(read(&[0; 8])), ErrorKind::LeadingZeros { zero_bytes: 8, .. }));
    let options = HeaderOptions { max_header_bytes: 100, ..HeaderOptions::default() };
    let json_len = |header_len: u64, byte_len: u64| {
        Header::json_len(header_len.to_le_bytes(), byte_len, &options)
    };
    assert_eq!(json_len(0, 8).unwrap(), 0);
    assert_eq!(json_len(99, 1000).unwrap(), 99);
    assert_eq!(json_len(100, 108).unwrap(), 100);
    let too_large = json_len(101, 1000).unwrap_err();
    let says = "header of 101 bytes, the limit is 100 (HeaderOptions::max_header_bytes raises it)";
    assert_eq!(too_large.to_string(), says);
    for (header_len, byte_len) in [(1, 8), (100, 107), (u64::MAX, 1000), (u64::MAX - 7, u64::MAX)] {
        let error = json_len(header_len, byte_len).unwrap_err();
        assert!(matches!(error, ErrorKind::HeaderPastEnd { .. }), "{error:?}");
    }
}

#[test]
fn no_option_lets_a_header_be_longer_than_its_places_can_count() {
    let options = HeaderOptions { max_header_bytes: u64::MAX, ..HeaderOptions::default() };
    let json_len = |header_len: u64| Header::json_len(header_len.to_le_bytes(), 1 << 40, &options);
    assert_eq!(json_len(u32::MAX.into()).unwrap(), u32::MAX as usize);
    let too_long = json_len(1 << 32).unwrap_err();
    assert_eq!(too_long.to_string(), "header of 4294967296 bytes, the limit is 4294967295");
}

/// The exceeded limit of a refused header: what, found and limit.
fn limit_of(error: &Error) -> (LimitOn, u64, u64) {
    let ErrorKind::Limit(limit) = error.kind() else { panic!("{error:?}") };
    (limit.what, limit.found, limit.limit)
}

/// Reads a header of these tensors, in the plain form and another.
fn within(options: &HeaderOptions, names: &[&str], shape: &str) -> Result<(), Error> {
    let entries = names
        .iter()
        .map(|name| format!(r#""{name}":{{"dtype":"U8","shape":{shape},"data_offsets":[0,0]}}"#));
    let entries: Vec<_> = entries.collect();
    let [plain, other] = ["", " "].map(|space| {
        let json = format!(r#"{{{space}"__metadata__":{{"a":"b"}},{}}}"#, entries.join(","));
        Header::from_bytes(&file(&json, 0), options).map(drop)
    });
    assert_eq!(format!("{plain:?}"), format!("{other:?}"));
    plain
}

#[test]
fn limits_hold_to_the_last_one_and_say_what_raises_them() {
    let options = HeaderOptions {
        max_tensors: 2,
        max_name_bytes: 5,
        max_rank: 6,
        ..HeaderOptions::default()
    };
    let within = |names: &[&str], shape: &str| within(&options, names, shape);
    assert!(within(&["ab", "été"], "[0,1,1,1,1,1]").is_ok());

    let tensors = within(&["a", "b", "c", "d"], "[0]").unwrap_err();
    assert_eq!(limit_of(&tensors), (LimitOn::Tensors, 4, 2));
    let message = "4 tensors, the limit is 2 (HeaderOptions::max_tensors raises it)";
    assert_eq!(tensors.to_string(), message);
    let name = within(&["ab", "étés"], "[0]").unwrap_err();
    assert_eq!(limit_of(&name), (LimitOn::NameBytes, 6, 5));
    let message = "tensor \"étés\": name of 6 bytes, the limit is 5 \
        (HeaderOptions::max_name_bytes raises it)";
    assert_eq!((name.to_string(), name.tensor()), (message.to_owned(), Some("étés")));
    let rank = within(&["ab"], "[0,1,1,1,1,1,1,1]").unwrap_err();
    assert_eq!(limit_of(&rank), (LimitOn::Dimensions, 8, 6));
    let message = "tensor \"ab\": 8 dimensions, the limit is 6 \
        (HeaderOptions::max_rank raises it)";
    assert_eq!((rank.to_string(), rank.tensor()), (message.to_owned(), Some("ab")));
}

#[test]
fn a_file_with_more_tensors_than_may_be_is_told_how_many_it_has() {
    let options = HeaderOptions { max_tensors: 2, ..HeaderOptions::default() };
    for (names, count) in [(&["a", "b", "c"][..], 3), (&["a", "b", "c", "d", "e"], 5)] {
        let error = within(&options, names, "[0]").unwrap_err();
        assert_eq!(limit_of(&error), (LimitOn::Tensors, count, 2));
    }
}

#[test]
fn default_limits_are_those_of_the_documentation() {
    let options = HeaderOptions::default();
    for (len, is_ok) in [(65_536, true), (65_537, false)] {
        assert_eq!(within(&options, &[&"x".repeat(len)], "[0]").is_ok(), is_ok, "{len}");
    }
    for (rank, is_ok) in [(64, true), (65, false)] {
        let shape = format!("[0{}]", ",1".repeat(rank - 1));
        assert_eq!(within(&options, &["x"], &shape).is_ok(), is_ok, "{rank}");
    }
    assert_eq!((options.max_header_bytes, options.max_tensors), (100_000_000, 1_000_000));
}
