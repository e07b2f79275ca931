//! Literal headers, each with its verdict.

use super::{Header, HeaderOptions, TensorInfo};
use crate::{Dtype, Error, ErrorKind};

/// A file of this header and this many bytes of data.
fn file(json: &str, data_len: usize) -> Vec<u8> {
    let len = (json.len() as u64).to_le_bytes();
    [&len[..], json.as_bytes(), &vec![0; data_len]].concat()
}

fn read(bytes: &[u8]) -> Result<Header, Error> {
    Header::from_bytes(bytes, &HeaderOptions::default())
}

fn parse(json: &str, data_len: usize) -> Result<Header, Error> {
    read(&file(json, data_len))
}

fn refused(result: Result<Header, Error>) -> ErrorKind {
    result.unwrap_err().into_kind()
}

/// Asserts that a header gives an error of this kind with exactly this message.
macro_rules! assert_refused {
    ($json:expr, $data_len:expr, $variant:pat, $message:expr) => {{
        let error = parse($json, $data_len).unwrap_err();
        assert!(matches!(error.kind(), $variant), "{error:?} for {}", $json);
        assert_eq!(error.to_string(), $message, "{}", $json);
        assert_eq!(error.path(), None);
    }};
}

// After the macro, which they use.
mod cover;
mod limits;

/// A header of one tensor `w`.
pub(super) fn w(dtype: &str, shape: &str, offsets: &str) -> String {
    format!(r#"{{"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#)
}

#[test]
fn accepts_what_the_format_allows() {
    let cases = [
        ("{}", 0, 0),
        (" \t\r\n{} \n\t\r", 0, 0),
        (r#"{"__metadata__":{"key":"value"}}"#, 0, 0),
        (r#"{"__metadata__":null}"#, 0, 0),
        (&w("F32", "[]", "[0,4]"), 4, 1),
        (&w("F32", "[0,1000]", "[0,0]"), 0, 1),
        (&w("F32", "[0,4294967296,4294967296]", "[0,0]"), 0, 1),
        (&w("F4", "[1,2]", "[0,1]"), 1, 1),
        (&w("F6_E2M3", "[4]", "[0,3]"), 3, 1),
        (&w("U8", "[1,2,1,2,1,2]", "[0,8]"), 8, 1),
        (r#"{"":{"data_offsets":[0,1],"shape":[1],"dtype":"BOOL"}}"#, 1, 1),
        (r#"{"w": {"dtype": "U8", "shape": [1, 2], "data_offsets": [0, 2]}}"#, 2, 1),
        (r#"{"\u0061\n":{"dtyp\u0065":"\u0055\u0038","shape":[],"data_offsets":[0,1]}}"#, 1, 1),
        (r#"{"w":{"dtype":{"U8":null},"shape":[1],"data_offsets":[0,1]}}"#, 1, 1),
        (
            r#"{"w":{"x":[{"y":[1,-1,1e9,true,null,"z"]}],"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#,
            1,
            1,
        ),
        (
            r#"{"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"z":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}"#,
            3,
            3,
        ),
    ];
    for (json, data_len, len) in cases {
        let header = parse(json, data_len).unwrap_or_else(|error| panic!("{error} for {json}"));
        assert_eq!(header.len(), len, "{json}");
        assert_eq!(header.is_empty(), len == 0, "{json}");
        assert_eq!(header.data_len(), data_len as u64, "{json}");
    }
}

#[test]
fn tensors_are_listed_by_name_with_ranges_in_the_file() {
    let json = r#"{"b":{"dtype":"F16","shape":[3],"data_offsets":[4,10]},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}"#;
    let header = parse(json, 10).unwrap();
    let names: Vec<_> = header.tensors().iter().map(TensorInfo::name).collect();
    assert_eq!(names, ["a", "b"]);
    let start = header.data_start();
    assert_eq!((start, header.header_len()), (json.len() as u64 + 8, json.len() as u64));
    let b = header.get("b").unwrap();
    assert_eq!(b.file_range(), start + 4..start + 10);
    assert_eq!(
        (b.dtype(), b.shape(), b.num_elements(), b.byte_len()),
        (Dtype::F16, &[3][..], 3, 6)
    );
    assert_eq!(header.get("a").unwrap().num_elements(), 1);
    assert_eq!(header.get("c"), None);
    assert_eq!(header.into_parts().0.len(), 2);
}

#[test]
fn empty_metadata_is_not_the_same_as_none() {
    assert_eq!(parse("{}", 0).unwrap().metadata(), None);
    assert_eq!(parse(r#"{"__metadata__":null}"#, 0).unwrap().metadata(), None);
    let empty = parse(r#"{"__metadata__":{}}"#, 0).unwrap();
    assert!(empty.metadata().unwrap().is_empty());
    let escaped = parse(r#"{"__metadata\u005f_":{"a\u0062":"\"q\"","c":"d"}}"#, 0).unwrap();
    let metadata: Vec<_> = escaped.metadata().unwrap().iter().collect();
    assert_eq!(metadata, [("ab", "\"q\""), ("c", "d")]);
}

#[test]
fn rejects_text_that_is_not_a_header() {
    let cases = [
        ("[1,2,3]", "line 1 column 0: invalid type: sequence, expected an object of tensors"),
        ("null", "line 1 column 4: invalid type: null, expected an object of tensors"),
        ("{} x", "line 1 column 4: trailing characters"),
        ("{}\0", "line 1 column 3: trailing characters"),
        ("{\n\"w\":", "line 2 column 4: EOF while parsing a value"),
        (r#"{"a":{},}"#, "tensor"),
        (r#"{"\ud800":{}}"#, "line 1 column 9: unexpected end of hex escape"),
        (
            r#"{"__metadata__":{},"__metadata__":{}}"#,
            "line 1 column 33: duplicate field `__metadata__`",
        ),
        (
            r#"{"__metadata__":7}"#,
            "line 1 column 17: invalid type: integer `7`, expected metadata as an object of strings",
        ),
    ];
    for (json, message) in cases {
        match message {
            "tensor" => assert!(parse(json, 0).is_err()),
            _ => assert_refused!(
                json,
                0,
                ErrorKind::HeaderJson { .. },
                format!("header at {message}")
            ),
        }
    }
    let mut bytes = file(r#"{"w":{}}"#, 0);
    bytes.splice(10..11, [0xff]);
    assert!(matches!(refused(read(&bytes)), ErrorKind::HeaderNotUtf8 { valid_up_to: 2, .. }));
}

#[test]
fn rejects_names_and_keys_given_twice() {
    let entry = r#"{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
    for twin in ["key00", r"k\u0065y00"] {
        let json = format!(r#"{{"key00":{entry},"a":{entry},"{twin}":{entry}}}"#);
        let message = r#"tensor "key00": duplicate name in the header"#;
        assert_refused!(&json, 0, ErrorKind::DuplicateTensor, message);
    }
    for twin in ["k", r"\u006b"] {
        let json = format!(r#"{{"__metadata__":{{"k":"1","{twin}":"1"}}}}"#);
        assert_refused!(
            &json,
            0,
            ErrorKind::DuplicateMetadataKey { .. },
            r#"metadata "k": duplicate key"#
        );
    }
}

#[test]
fn rejects_metadata_that_is_not_strings() {
    let cases = [
        ("0", "integer `0`"),
        ("-1", "integer `-1`"),
        ("0.5", "floating point `0.5`"),
        ("true", "boolean `true`"),
        ("null", "null"),
        ("[1]", "an array"),
        ("{\"a\":1}", "an object"),
    ];
    for (value, found) in cases {
        let json = format!(r#"{{"__metadata__":{{"format":"pt","steps":{value}}}}}"#);
        let message = format!(r#"metadata "steps": expected a string, found {found}"#);
        assert_refused!(&json, 0, ErrorKind::MetadataNotString { .. }, message);
    }
}

#[test]
fn zeros_in_place_of_the_length_are_told_from_text() {
    let message = "all of its 8 bytes are zeros: they were never written, or were lost";
    assert_refused!("", 0, ErrorKind::LeadingZeros { zero_bytes: 8, byte_len: 8 }, message);
}

#[test]
fn a_tensor_with_the_name_of_the_metadata_is_named() {
    for json in [
        r#"{"__metadata__":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#,
        r#"{"__metadata__":{"data_offsets":[0,1],"dtype":"U8","shape":[1]}}"#,
    ] {
        let message = "tensor \"__metadata__\": the name is reserved for metadata";
        assert_refused!(json, 1, ErrorKind::ReservedName, message);
    }
    for json in [
        r#"{"__metadata__":{"dtype":"U8","shape":[1]}}"#,
        r#"{"__metadata__":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"format":"pt"}}"#,
        r#"{"__metadata__":{"dtype":"U8","shape":[1],"data_offsets":"#,
    ] {
        let message = "metadata \"shape\": expected a string, found an array";
        assert_refused!(json, 1, ErrorKind::MetadataNotString { .. }, message);
    }
}

#[test]
fn rejects_entries_with_wrong_fields() {
    let integer = "expected a dimension (an integer, 0 or more)";
    let offsets = "expected data_offsets as an array of begin and end";
    let cases = [
        (w("U8", "[-1,4]", "[0,4]"), format!("invalid type: integer `-1`, {integer}")),
        (w("U8", "[1.0]", "[0,1]"), format!("invalid type: floating point `1.0`, {integer}")),
        (w("U8", "[-0]", "[0,0]"), format!("invalid type: floating point `-0.0`, {integer}")),
        (w("U8", "[[1]]", "[0,1]"), format!("invalid type: sequence, {integer}")),
        (w("U8", "[\"1\"]", "[0,1]"), format!("invalid type: string \"1\", {integer}")),
        (
            w("U8", "4", "[0,4]"),
            "invalid type: integer `4`, expected shape as an array of dimensions".into(),
        ),
        (w("U8", "[4]", "[0,4,8]"), format!("invalid length 3, {offsets}")),
        (w("U8", "[4]", "[4]"), format!("invalid length 1, {offsets}")),
        (w("U8", "[4]", "[]"), format!("invalid length 0, {offsets}")),
        (w("U8", "[4]", "{}"), format!("invalid type: map, {offsets}")),
        (
            w("U8", "[4]", "[0,-4]"),
            "invalid type: integer `-4`, expected a data offset (an integer, 0 or more)".into(),
        ),
        (r#"{"w":{"dtype":"U8","shape":[]}}"#.into(), "missing field `data_offsets`".into()),
        (r#"{"w":{"dtype":"U8","data_offsets":[0,1]}}"#.into(), "missing field `shape`".into()),
        (r#"{"w":{"shape":[],"data_offsets":[0,1]}}"#.into(), "missing field `dtype`".into()),
        (r#"{"w":{"dtype":"U8","dtype":"U8"}}"#.into(), "duplicate field `dtype`".into()),
        (r#"{"w":{"shape":[],"shape":[]}}"#.into(), "duplicate field `shape`".into()),
        (
            r#"{"w":{"dtype":3}}"#.into(),
            "invalid type: integer `3`, expected dtype as a string".into(),
        ),
        (
            r#"{"w":{"dtype":{"U8":null,"I8":null}}}"#.into(),
            "dtype as an object of more or less than one null".into(),
        ),
        (
            r#"{"w":["U8",[1],[0,1]]}"#.into(),
            "invalid type: sequence, expected an object with dtype, shape and data_offsets".into(),
        ),
        (
            r#"{"w":null}"#.into(),
            "invalid type: null, expected an object with dtype, shape and data_offsets".into(),
        ),
    ];
    for (json, message) in cases {
        let error = parse(&json, 4).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidTensor { .. }), "{error:?} for {json}");
        let start = format!("tensor \"w\": {message} at line 1 column ");
        assert!(error.to_string().starts_with(&start), "{error} for {json}");
    }
}

#[test]
fn long_strings_in_wrong_places_are_cut() {
    let json = w("U8", &format!("\"{}\"", "é".repeat(1_000_000)), "[0,1]");
    let message = parse(&json, 1).unwrap_err().to_string();
    assert!(message.len() < 400, "{} bytes", message.len());
    assert!(message.ends_with("é… at line 1 column 2000029"), "{message}");
}

#[test]
fn rejects_unknown_dtypes_by_name() {
    for dtype in ["Q4_K", "f32", "", "F8_E4M3 "] {
        let message = format!(r#"tensor "w": unknown dtype "{dtype}""#);
        assert_refused!(&w(dtype, "[1]", "[0,4]"), 4, ErrorKind::UnknownDtype(_), message);
    }
}

#[test]
fn texts_without_a_limit_are_cut_in_errors() {
    let long = "x".repeat(100_000);
    for json in [
        w(&long, "[]", "[0,1]"),
        format!(r#"{{"__metadata__":{{"{long}":"","{long}":""}}}}"#),
        format!(r#"{{"__metadata__":{{"{long}":0}}}}"#),
        format!(r#"{{"{long}":0}}"#),
        w("U8", &format!("\"{long}\""), "[0,1]"),
    ] {
        let error = parse(&json, 1).unwrap_err();
        assert!(format!("{error:?}{error}").len() < 1000, "{}", error.to_string().len());
    }
}

#[test]
fn nests_are_refused_at_the_depth_of_the_reference_on_a_small_stack() {
    let nest = |open: &str, close: &str, depth: usize| {
        let (open, close) = (open.repeat(depth), close.repeat(depth));
        format!(r#"{{"w":{{"x":{open}0{close},"dtype":"U8","shape":[],"data_offsets":[0,1]}}}}"#)
    };
    let verdicts = move || {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            assert!(parse(&nest(open, close, 125), 1).is_ok());
            for depth in [126, 200_000] {
                let error = parse(&nest(open, close, depth), 1).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::HeaderJson { .. }), "{error:?}");
            }
            for place in
                ["", "{\"w\":", "{\"__metadata__\":", "{\"w\":{\"shape\":", "{\"w\":{\"dtype\":"]
            {
                assert!(parse(&format!("{place}{}", open.repeat(200_000)), 0).is_err());
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(verdicts).unwrap();
    thread.join().unwrap();
}
