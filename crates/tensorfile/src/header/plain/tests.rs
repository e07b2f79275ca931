//! Compares the parser of the plain form with the general one.

use std::cell::Cell;

use proptest::collection::{SizeRange, vec};
use proptest::option;
use proptest::prelude::{Just, Strategy};
use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use proptest::{prop_assert_eq, prop_oneof};

use super::parse;
use crate::header::tests::w;
use crate::header::{HeaderOptions, json};

#[test]
fn the_plain_form_means_what_the_general_parser_says() {
    let shape = w("U8", "[1,2,3,4,5,0]", "[0,0]");
    let plain_forms = [
        "{}",
        "{} \n",
        r#"{"__metadata__":{}}"#,
        r#"{"__metadata__":{"format":"pt","é":"a long value, with { and }"},"w":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#,
        &shape,
        r#"{"模型":{"data_offsets":[0,9999999999999999999],"dtype":"F8_E4M3","shape":[0]}}"#,
    ];
    for text in plain_forms {
        let fast =
            parse(text, &HeaderOptions::default()).unwrap_or_else(|| panic!("not plain: {text}"));
        let slow = json::parse(text, &HeaderOptions::default()).unwrap();
        assert_eq!((fast.tensors, fast.metadata), (slow.tensors, slow.metadata), "{text}");
    }
}

#[test]
fn what_is_not_of_the_plain_form_is_left_to_the_general_parser() {
    let entry = r#"{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#;
    let others = [
        " {}".into(),
        "{}x".into(),
        r#"{}"__metadata__":{}}"#.into(),
        r#"{},"__metadata__":{}}"#.into(),
        "{".into(),
        format!(r#"{{"w":{entry},}}"#),
        format!(r#"{{"w":{entry},"__metadata__":{{}}}}"#),
        format!(r#"{{"\u0077":{entry}}}"#),
        format!("{{\"a long name with a \u{1} in it\":{entry}}}"),
        r#"{"__metadata__":{"a":"1","a":"1"}}"#.into(),
        r#"{"__metadata__":{"a":1}}"#.into(),
        w("U8", "[01]", "[0,1]"),
        w("U8", "[1.0]", "[0,1]"),
        w("U8", "[1e0]", "[0,1]"),
        w("U8", "[]", "[0,18446744073709551615]"),
        w("U8", "[1,]", "[0,1]"),
        w("U8", "[1]", "[0,1,2]"),
        w("U8", "[1]", "[,1]"),
        w("u8", "[1]", "[0,1]"),
        r#"{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":0}}"#.into(),
        r#"{"w":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#.into(),
        r#"{"w":{"dtype":"U8","shape":[1]}}"#.into(),
        r#"{"w":{}}"#.into(),
    ];
    for text in others {
        assert!(parse(&text, &HeaderOptions::default()).is_none(), "{text}");
    }
}

/// A number in a header, mostly a valid one.
fn number() -> impl Strategy<Value = &'static str> {
    let odd = vec![
        "",
        "00",
        "01",
        "-1",
        "-0",
        "1.0",
        "1e0",
        "+1",
        " 1",
        "9999999999999999999",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999",
        "\"1\"",
        "[1]",
    ];
    prop_oneof![40 => select(vec!["0", "1", "2", "17", "4294967296"]), 1 => select(odd)]
}

/// Numbers in brackets, sometimes with a wrong one.
fn numbers(count: impl Into<SizeRange>) -> impl Strategy<Value = String> {
    let ends = prop_oneof![
        60 => Just(("[", "]")),
        1 => select(vec![("[", ""), ("", "]"), ("[", ",]"), ("[,", "]"), ("[ ", "]"), ("{", "}")]),
    ];
    (vec(number(), count), ends).prop_map(|(n, (start, end))| start.to_owned() + &n.join(",") + end)
}

/// A string in quotes, from a small set, so that some are equal.
fn string() -> impl Strategy<Value = &'static str> {
    let odd = vec![r"\u0061", r"a\n", "\"a", "a\u{7}", "__metadata__", r"\", "\u{ff}\"\""];
    let plain = vec!["", "a", "b", "layers.0.weight", "a name of more than eight bytes", "模型"];
    prop_oneof![60 => select(plain), 1 => select(odd)]
}

/// A tensor's entry: its fields in any order, sometimes with one missing, twice or unknown.
fn entry() -> impl Strategy<Value = String> {
    let dtype =
        prop_oneof![40 => select(vec!["U8", "F32", "F8_E4M3"]), 1 => select(vec!["u8", ""])];
    let offsets = prop_oneof![60 => numbers(2), 1 => numbers(0..4)];
    let extra = prop_oneof![
        40 => Just(""),
        1 => select(vec![r#","x":[]"#, r#","dtype":"U8""#, r#","shape":[]"#, ",", " "]),
    ];
    let missing = prop_oneof![40 => Just(3), 1 => 0..3_usize];
    (string(), dtype, numbers(0..7), offsets, missing, extra, 0..2_usize).prop_map(
        |(name, dtype, shape, offsets, missing, extra, first)| {
            let mut fields = vec![
                format!(r#""dtype":"{dtype}""#),
                format!(r#""shape":{shape}"#),
                format!(r#""data_offsets":{offsets}"#),
            ];
            if missing < fields.len() {
                fields.remove(missing);
            }
            fields.rotate_left(first);
            format!(r#""{name}":{{{}{extra}}}"#, fields.join(","))
        },
    )
}

/// A header of the plain form, or nearly so.
fn nearly_plain() -> impl Strategy<Value = String> {
    let key_and_value = (string(), string()).prop_map(|(k, v)| format!(r#""{k}":"{v}""#));
    let metadata = vec(key_and_value, 0..3)
        .prop_map(|entries| format!(r#""__metadata__":{{{}}}"#, entries.join(",")));
    let ends = prop_oneof![
        40 => select(vec![("{", "}"), ("{", "}  "), ("{", "}\n")]),
        1 => select(vec![("", "}"), ("{", ""), ("{", "}}"), ("{", ",}"), (" {", "}"), ("{", "}\0")]),
    ];
    (option::of(metadata), vec(entry(), 0..4), ends).prop_map(
        |(metadata, entries, (start, end))| {
            let members: Vec<_> = metadata.into_iter().chain(entries).collect();
            start.to_owned() + &members.join(",") + end
        },
    )
}

#[test]
fn nothing_makes_the_plain_form_mean_something_else() {
    const CASES: u32 = 4000;
    let (plain_forms, refused) = (Cell::new(0), Cell::new(0));
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&nearly_plain(), |text| {
            let general = json::parse(&text, &HeaderOptions::default());
            refused.set(refused.get() + u32::from(general.is_err()));
            if let Some(plain) = parse(&text, &HeaderOptions::default()) {
                plain_forms.set(plain_forms.get() + 1);
                let general = general.map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert_eq!(plain.tensors, general.tensors);
                prop_assert_eq!(plain.metadata, general.metadata);
            }
            Ok(())
        })
        .unwrap();
    // The comparison is meaningful only if both verdicts are frequent.
    let (plain_forms, refused) = (plain_forms.get(), refused.get());
    assert!(plain_forms > CASES / 3 && refused > CASES / 10, "{plain_forms}, {refused}");
}
