//! Lack of memory is the error; a document without `weight_map` is a map itself, or refused.

use std::borrow::Cow;
use std::path::Path;

use tensorfile::reserve::NoMemory;

use super::document::Document;
use super::value::Value;
use super::{Metadata, Pairs, bare_pairs, complete};
use crate::ErrorKind;

const NONE: NoMemory = NoMemory(7);

/// Pairs whose last one could not be allocated.
fn broken_off(name: Result<Cow<'static, str>, NoMemory>, value: Value<'static>) -> Pairs<'static> {
    let mut pairs = Pairs::new("");
    pairs.push(Ok("a".into()), Value::Text("a.safetensors".into()));
    pairs.push(name, value);
    pairs.push(Ok("b".into()), Value::Other("null"));
    assert!(pairs.entries.len() == 1 && pairs.fault.is_none() && pairs.lack == Some(NONE));
    pairs
}

#[test]
fn a_lack_of_memory_is_the_error_whatever_else_could_be_said() {
    let text = Value::Text("b.safetensors".into());
    let of_name = Some(broken_off(Err(NONE), text));
    let of_value = Some(broken_off(Ok("b".into()), Value::NoMemory(NONE)));
    let metadata = Metadata { lack: Some(NONE), ..Metadata::default() };
    for document in [
        Document { weight_map: of_name, ..Document::default() },
        Document { weight_map: of_value, ..Document::default() },
        Document { metadata, ..Document::default() },
        Document { lack: Some(NONE), ..Document::default() },
    ] {
        let error = complete(document.lack(), document).map(drop).unwrap_err().at("i");
        assert_eq!(error.path(), Some(Path::new("i")));
        assert_eq!(error.to_string(), "i: no memory for 7 bytes");
        let kind = error.kind();
        assert!(
            matches!(kind, ErrorKind::File(tensorfile::ErrorKind::OutOfMemory { byte_len: 7 })),
            "{kind:?}"
        );
    }
    assert!(complete(None, Document::default()).is_ok());
}

#[test]
fn a_document_that_is_no_map_as_a_whole_has_none() {
    for (text, is_map) in [(r#"{"a": "m.safetensors"}"#, true), (r#"{"a": 1}"#, false)] {
        assert_eq!(bare_pairs(text, text).is_ok(), is_map, "{text}");
    }
}
