//! Indexes as text, each with its map or its error.

use super::WeightMap;
use crate::json::JsonError;
use crate::{ErrorKind, Result};

fn parse(text: &str) -> Result<WeightMap> {
    WeightMap::parse(text.to_owned())
}

/// The tensor named by the error for a text, if any, and its kind.
fn refused(text: &str) -> (Option<String>, ErrorKind) {
    let error = parse(text).unwrap_err();
    (error.tensor().map(str::to_owned), error.into_kind())
}

/// Name and shard of every tensor.
fn pairs(map: &WeightMap) -> Vec<(&str, &str)> {
    map.iter().map(|(name, shard)| (name, &**map.shards().get(shard).unwrap())).collect()
}

#[test]
fn tensors_come_by_name_and_shards_in_natural_order() {
    let map = parse(
        r#"{"weight_map": {"b": "s-10.safetensors", "a": "./s-9.safetensors",
            "c": "s-9.safetensors", "d": "d/s-1.safetensors"}}"#,
    )
    .unwrap();
    assert_eq!(
        map.shards().iter().map(|s| &**s).collect::<Vec<_>>(),
        ["d/s-1.safetensors", "s-9.safetensors", "s-10.safetensors"]
    );
    assert_eq!(
        pairs(&map),
        [
            ("a", "s-9.safetensors"),
            ("b", "s-10.safetensors"),
            ("c", "s-9.safetensors"),
            ("d", "d/s-1.safetensors")
        ]
    );
    assert_eq!(map.tensors_per_shard().unwrap(), [1, 2, 1]);
}

#[test]
fn a_number_that_json_lacks_is_no_shard() {
    let (_, kind) = refused(r#"{"metadata": {}, "weight_map": {"a": NaN}}"#);
    let ErrorKind::Json(JsonError::Syntax { line, column, .. }) = kind else { panic!("{kind:?}") };
    assert_eq!((line, column), (1, 38));
}

#[test]
fn escaped_names_and_paths_are_read_as_they_mean() {
    let map = parse(
        r#"{"weight_map": {"z\u00e9\n": "\u0061.safetensors", "é": "a.safetensors",
            "\ud83d\ude00": "a.safetensors"}}"#,
    )
    .unwrap();
    let expected = [("zé\n", "a.safetensors"), ("é", "a.safetensors"), ("😀", "a.safetensors")];
    assert_eq!(pairs(&map), expected);
}

#[test]
fn byte_order_mark_line_ends_and_other_keys_do_not_matter() {
    for text in [
        "\u{feff}{\r\n  \"weight_map\": {\r\n    \"a\": \"m.safetensors\"\r\n  }\r\n}\r\n",
        r#"{"weights": [[{"x": [1e5, null]}]], "weight_map": {"a": "m.safetensors"}, "z": {}}"#,
        r#"{"weight_map": {"a": "m.safetensors"}, "metadata": {}, "metadata": null}"#,
        r#"{"metadata": [1e999, "x"], "weight_map": {"a": "m.safetensors"}}"#,
        r#"{"metadata": {"x": NaN}, "weight_map": {"\u0061": "m.safetensors"}}"#,
        r#"{"weight_map": {"a": "m.safetensors"}, "metadata": {"total_size": -Infinity}}"#,
    ] {
        let map = parse(text).unwrap();
        assert_eq!(pairs(&map), [("a", "m.safetensors")], "{text}");
        assert!(map.total_size().is_none() && map.metadata().is_empty() && !map.is_bare());
    }
}

#[test]
fn total_size_is_kept_as_it_is_written() {
    for (json, shown, byte_len) in [
        ("0", "0", Some(0)),
        ("18446744073709551615", "18446744073709551615", Some(u64::MAX)),
        ("55562855904.0", "55562855904.0", Some(55_562_855_904)),
        ("1e3", "1000.0", Some(1000)),
        ("\"12\"", "12", Some(12)),
        ("\"12 GB\"", "12 GB", None),
        ("-5", "-5", None),
        ("1.5", "1.5", None),
        ("18446744073709551616", "1.8446744073709552e19", None),
    ] {
        let text = format!(r#"{{"metadata":{{"total_size":{json}}},"weight_map":{{}}}}"#);
        let map = parse(&text).unwrap();
        let total_size = map.total_size().unwrap();
        assert_eq!(total_size.as_str(), shown, "{json}");
        assert_eq!(total_size.byte_len(), byte_len, "{json}");
    }
    for json in ["null", "true", "[1]", "{\"a\":1}", "1e999"] {
        let text = format!(r#"{{"metadata":{{"total_size":{json}}},"weight_map":{{}}}}"#);
        assert!(parse(&text).unwrap().total_size().is_none(), "{json}");
    }
}

#[test]
fn strings_of_the_metadata_are_kept_and_nothing_else_is() {
    let map = parse(
        r#"{"metadata": {"format": "pt", "total_parameters": 5, "nested": {"a": "b"},
            "lm_head.weight": "model.embed_tokens.w\u0065ight"}, "weight_map": {}}"#,
    )
    .unwrap();
    let expected = [("format", "pt"), ("lm_head.weight", "model.embed_tokens.weight")];
    assert!(map.is_empty());
    assert_eq!(map.metadata().iter().collect::<Vec<_>>(), expected);
}

#[test]
fn of_equal_keys_of_the_metadata_the_last_whose_value_is_a_string_counts() {
    let map = parse(
        r#"{"metadata": {"a": "x", "a": 1, "b": null, "b": "y", "c": "1", "c": "2"},
            "weight_map": {}}"#,
    )
    .unwrap();
    assert_eq!(map.metadata().iter().collect::<Vec<_>>(), [("a", "x"), ("b", "y"), ("c", "2")]);
}

#[test]
fn a_bare_map_is_taken_only_if_it_holds_nothing_but_shard_paths() {
    let map = parse(r#"{"metadata": {"total_size": 7}, "a": "x/m.safetensors"}"#).unwrap();
    assert_eq!(pairs(&map), [("a", "x/m.safetensors")]);
    assert_eq!(map.total_size().unwrap().byte_len(), Some(7));
    assert!(map.is_bare());
    for text in [
        "{}",
        r#"{"metadata": {}}"#,
        r#"{"a": "m.safetensors", "b": 3}"#,
        r#"{"a": "m.safetensors", "b": {"c": "m.safetensors"}}"#,
        r#"{"architectures": ["x"], "model_type": "llama"}"#,
        r#"{"a": "m.bin"}"#,
    ] {
        assert!(matches!(refused(text), (None, ErrorKind::NoWeightMap)), "{text}");
    }
    let (_, escape) = refused(r#"{"a": "../m.safetensors"}"#);
    assert!(matches!(escape, ErrorKind::ShardPath { .. }), "{escape:?}");
}

#[test]
fn a_shard_that_is_no_string_is_refused_with_its_type_and_the_first_tensor_by_name() {
    for (json, expected) in [
        (r#"{"file": "a.safetensors", "offset": [0, {}]}"#, "an object"),
        ("[\"a.safetensors\", [[]]]", "an array"),
        ("3", "a number"),
        ("-3", "a number"),
        ("0.5", "a number"),
        ("null", "null"),
        ("true", "a boolean"),
    ] {
        let text = format!(r#"{{"weight_map": {{"z": 1, "t": {json}, "u": "/x"}}}}"#);
        match refused(&text) {
            (Some(tensor), ErrorKind::ShardPathType { found }) => {
                assert_eq!((&*tensor, &*found), ("t", expected));
            }
            other => panic!("{json}: {other:?}"),
        }
    }
}

#[test]
fn a_shard_path_that_leaves_the_folder_is_refused_with_its_text() {
    let text =
        r#"{"weight_map": {"a": "m.safetensors", "c": "x", "b": "..\u002foutside.safetensors"}}"#;
    match refused(text) {
        (Some(tensor), ErrorKind::ShardPath { value, .. }) => {
            assert_eq!((&*tensor, &*value), ("b", "../outside.safetensors"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_mapped_twice_is_refused_after_unescaping() {
    for text in [
        r#"{"weight_map": {"ab": "m.safetensors", "c": "m.safetensors", "ab": "m.safetensors"}}"#,
        r#"{"weight_map": {"ab": "m.safetensors", "\u0061b": "n.safetensors"}}"#,
    ] {
        match refused(text) {
            (Some(tensor), ErrorKind::MappedTwice) => assert_eq!(tensor, "ab"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn text_that_is_no_json_is_refused_with_its_place() {
    for (text, at, says) in [
        ("", (1, 1), "EOF"),
        ("{\"weight_map\": {\"a\": \"m.safeten", (1, 31), "EOF"),
        ("{\"weight_map\": {\n\"a\": }}", (2, 6), "expected value"),
        ("{\"weight_map\": {}}\n=======\n{}", (2, 1), "merge conflict"),
        ("{\n<<<<<<< HEAD\n\"weight_map\": {}}", (2, 1), "merge conflict"),
        ("<<<<<<< HEAD\n{}", (1, 1), "merge conflict"),
        ("{\"weight_map\": null}", (1, 19), "weight_map: an object"),
        ("{\"weight_map\": [1]}", (1, 15), "weight_map: an object"),
        ("{\"weight_map\": {}, \"weight_map\": {}}", (1, 31), "twice"),
        ("[1, 2]", (1, 1), "an index: an object"),
    ] {
        match refused(text) {
            (None, ErrorKind::Json(JsonError::Syntax { line, column, message })) => {
                assert_eq!((line, column), at, "{text} {message}");
                assert!(message.contains(says) && !message.contains(" at line"), "{message}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn text_of_another_kind_is_named() {
    for text in ["<html>", "404: Not Found", "3"] {
        let (_, kind) = refused(text);
        assert!(matches!(kind, ErrorKind::Json(JsonError::NotJson { .. })), "{text}: {kind:?}");
    }
}

#[test]
fn nests_of_any_depth_end_in_a_verdict_on_a_small_stack() {
    let deep = |key: &str, end: &str| {
        let (open, close) = ("[{\"a\":".repeat(100_000), "}]".repeat(100_000));
        format!("{{{key}{open}0{close}{end}}}")
    };
    let texts = [
        (deep("\"x\":", ",\"weight_map\":{\"a\":\"m.safetensors\"}"), true),
        (deep("\"metadata\":", ",\"weight_map\":{}"), true),
        (deep("\"metadata\":{\"total_size\":", "},\"weight_map\":{}"), true),
        (deep("\"weight_map\":{\"t\":", "}"), false),
        (deep("\"bare\":", ""), false),
        ("[".repeat(200_000), false),
        (format!("{{\"weight_map\":{}", "{\"a\":".repeat(200_000)), false),
    ];
    let check = move || {
        for (text, is_ok) in texts {
            assert_eq!(parse(&text).is_ok(), is_ok);
        }
    };
    let thread = std::thread::Builder::new().stack_size(256 * 1024).spawn(check).unwrap();
    thread.join().unwrap();
}
