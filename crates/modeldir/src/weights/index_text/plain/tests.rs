//! The plain parser agrees with the general one, or leaves the text to it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::document::{Document, read_any};
use super::parse;

/// All that a document says; names as they are in the text.
fn said(text: &str, document: &Document<'_>) -> String {
    let pairs = document.weight_map.as_ref().unwrap();
    assert!(pairs.unescaped.is_empty() && pairs.fault.is_none());
    let entries: Vec<_> =
        pairs.entries.iter().map(|entry| (&text[entry.name()], entry.shard)).collect();
    format!("{entries:?} {:?} {:?}", pairs.shards, document.metadata)
}

/// Whether the text has the usual form, in which case both parsers must agree.
fn is_plain_and_agreed(text: &str) -> bool {
    let Some(plain) = parse(text) else { return false };
    assert_eq!(said(text, &plain), said(text, &read_any(text, text).unwrap()), "{text}");
    let pairs = plain.weight_map.unwrap();
    let names = pairs.entries.iter().map(|entry| &text[entry.name()]);
    assert!(!pairs.is_ascending || names.is_sorted_by(|a, b| a < b), "{text}");
    true
}

#[test]
fn takes_what_writers_emit() {
    for text in [
        r#"{"weight_map":{}}"#,
        r#" { "metadata" : { } , "weight_map" : { } } "#,
        r#"{"weight_map":{"a":"m.safetensors"},"metadata":{"total_size":5}}"#,
        "{\r\n\t\"weight_map\": {\r\n\t\"a\": \"m.safetensors\"\r\n}\r\n}\r\n",
        r#"{"metadata":{"total_size":1e3,"x":[{"y":null}],"z":"\u0061"},"weight_map":{}}"#,
        r#"{"weight_map":{"b":"./m.safetensors","a":"m.safetensors","模":"n.safetensors"}}"#,
        r#"{"weight_map":{"":"m.safetensors", "a":"m.safetensors","a":"m.safetensors"}}"#,
    ] {
        assert!(is_plain_and_agreed(text), "{text}");
    }
}

#[test]
fn leaves_what_is_unusual_or_wrong_to_the_general_parser() {
    for text in [
        "",
        "{}",
        "{\"weight_map\":{}",
        "{\"weight_map\":{}}}",
        "{\"weight_map\":{}} x",
        "{\"weight_map\":{},}",
        "{\"weight_map\":{},\"weight_map\":{}}",
        "{\"weight_map\":{},\"metadata\":{},\"metadata\":{}}",
        "{\"weight_map\":{},\"other\":1}",
        "{\"weight\\u005fmap\":{}}",
        "{\"metadata\":{}}",
        "{\"metadata\":null,\"weight_map\":{}}",
        "{\"metadata\":{\"a\":1e999},\"weight_map\":{}}",
        "{\"weight_map\":[]}",
        "{\"weight_map\":{\"a\":1}}",
        "{\"weight_map\":{\"a\":\"/m.safetensors\"}}",
        "{\"weight_map\":{\"a\":\"m.safetensors\",}}",
        "{\"weight_map\":{\"a\":\"m.safetensors\" \"b\":\"m.safetensors\"}}",
        "{\"weight_map\":{\"a\\n\":\"m.safetensors\"}}",
        "{\"weight_map\":{\"a\n\":\"m.safetensors\"}}",
        "{\"weight_map\":{\"a long name \u{1f}\":\"m.safetensors\"}}",
        "\u{feff}{\"weight_map\":{}}",
        "{\"weight_map\":{}}\u{a0}",
        "{\"a\":\"m.safetensors\"}",
    ] {
        assert!(!is_plain_and_agreed(text), "{text}");
    }
}

#[test]
fn knows_ascending_names() {
    for (names, is_ascending) in [
        (vec!["a"], true),
        (vec!["", "a", "aa", "ab"], true),
        (vec!["a", "a"], false),
        (vec!["aa", "a"], false),
        (vec!["a", "a!"], true),
        (vec!["a!", "a"], false),
        (vec!["sixteen bytes it", "sixteen bytes it is"], true),
        (vec!["sixteen bytes it is", "sixteen bytes it"], false),
        (vec!["sixteen bytes it", "sixteen bytes it"], false),
        (vec!["z", "é", "模"], true),
    ] {
        let row = |name: &&str| format!("\"{name}\":\"m.safetensors\"");
        let rows: Vec<_> = names.iter().map(row).collect();
        let text = format!("{{\"weight_map\":{{{}}}}}", rows.join(","));
        assert!(is_plain_and_agreed(&text));
        assert_eq!(parse(&text).unwrap().weight_map.unwrap().is_ascending, is_ascending);
    }
}

const NAMES: [&str; 8] = [
    "model.layers.0.mlp.experts.0.w",
    "model.layers.0.mlp.experts.1.w",
    "model.layers.0.mlp.experts.0.w_scale",
    "model.layers.0.m",
    "a",
    "a!",
    "",
    "模型.权重",
];
const SHARDS: [&str; 4] =
    ["s-1.safetensors", "s-10.safetensors", "./s-1.safetensors", "d/s.safetensors"];
const METADATA: [&str; 4] =
    ["", "\"total_size\": 9", "\"total_size\":1.5, \"a\": \"b\"", "\"a\":[{}], \"b\":-0"];
const EDITS: [&str; 16] =
    ["", "\"", "\\", "{", "}", "[", ",", ":", "0", " ", "\n", "\u{7}", "\\u0061", "é", "/", "a"];

fn index(
    rows: &[(&str, &str)],
    metadata: &str,
    spaces: &[&str],
    edits: &[(usize, usize, &str)],
) -> String {
    let mut spaces = spaces.iter().cycle();
    let mut space = || *spaces.next().unwrap();
    let mut text = format!("{{{}\"metadata\":{{{metadata}}},{}\"weight_map\":{{", space(), space());
    for (i, (name, shard)) in rows.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        text += &format!("{comma}{}\"{name}\":{}\"{shard}\"", space(), space());
    }
    text += &format!("{}}}{}}}\n", space(), space());
    let mut chars: Vec<char> = text.chars().collect();
    for (at, len, replacement) in edits {
        let at = chars.len().min(*at);
        let end = chars.len().min(at.saturating_add(*len));
        chars.splice(at..end, replacement.chars());
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_means_something_else_in_the_plain_form(
        rows in vec((select(&NAMES[..]), select(&SHARDS[..])), 0..6),
        metadata in select(&METADATA[..]),
        spaces in vec(select(&["", "", " ", "\n    ", "\r\n\t"][..]), 1..3),
        edits in vec((0..250_usize, 0..4_usize, select(&EDITS[..])), 0..4),
    ) {
        prop_assert!(is_plain_and_agreed(&index(&rows, metadata, &spaces, &[])));
        is_plain_and_agreed(&index(&rows, metadata, &spaces, &edits));
    }
}
