//! The case runner: a case that is right passes, and any expectation that is changed fails it.

use std::collections::BTreeSet;
use std::fs;

use modeldir_tests::{Case, Outcome, cases_in, conformance};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Makes a value another one.
type Change = fn(&Value) -> Value;

/// Keys whose values are expectations, and what to put in their place.
const EXPECTATIONS: [(&str, Change); 24] = [
    ("sha256", other_text),
    ("joined_sha256", other_text),
    ("dtype", other_text),
    ("shape", |shape| longer(shape, json!(7))),
    ("values", one_element_more),
    ("file", other_text),
    ("metadata", one_entry_more),
    ("nbytes", other_number),
    ("bytes", other_number),
    ("count", other_number),
    ("planned_bytes", other_number),
    ("lengths_sum", other_number),
    ("empty_ranks", other_number),
    ("error_mentions", |words| longer(words, json!("words that no error says"))),
    ("error_mentions_any", |words| longer(words, json!([["words that no error says"]]))),
    ("suggests", other_text),
    ("variant", other_text),
    ("absent", |names| longer(names, json!(null))),
    ("ignored_files", |names| longer(names, json!("no-such-file"))),
    ("unindexed_tensors", |names| longer(names, json!("no.such.tensor"))),
    ("stale_tensors", |names| longer(names, json!("no.such.tensor"))),
    ("total_size_differs", |flag| json!(flag != true)),
    ("aliases", one_entry_more),
    ("kind", |kind| if kind == "ok" { json!("error") } else { json!("ok") }),
];

fn other_text(text: &Value) -> Value {
    json!(format!("{}?", text.as_str().unwrap_or_default()))
}

fn other_number(number: &Value) -> Value {
    json!(number.as_u64().unwrap_or_default() + 1)
}

fn longer(list: &Value, more: Value) -> Value {
    let mut list = list.as_array().cloned().unwrap_or_default();
    list.push(more);
    Value::Array(list)
}

/// The object with an entry that no case has.
fn one_entry_more(object: &Value) -> Value {
    let mut object = object.clone();
    object["no such key"] = json!("no such value");
    object
}

/// Elements by tensor name, with one more for each tensor.
fn one_element_more(values: &Value) -> Value {
    let values = values.as_object().into_iter().flatten();
    values.map(|(name, list)| (name.clone(), longer(list, json!(0)))).collect()
}

/// Every place in a value that has one of the keys above, as JSON pointers.
fn places(value: &Value, here: &str, found: &mut Vec<(String, &'static str)>) {
    match value {
        Value::Object(object) => {
            // Any variant that is not there is refused alike.
            let open_variant = object.get("op").is_some_and(|op| op == "open_variant");
            for (key, inner) in object {
                if key == "variant" && open_variant && object.contains_key("kind") {
                    continue;
                }
                let place = format!("{here}/{}", key.replace('~', "~0").replace('/', "~1"));
                let known = EXPECTATIONS.iter().find(|(name, _)| name == key);
                if let Some((name, _)) = known.filter(|_| !inner.is_null()) {
                    found.push((place.clone(), name));
                }
                places(inner, &place, found);
            }
        }
        Value::Array(list) => {
            for (i, inner) in list.iter().enumerate() {
                places(inner, &format!("{here}/{i}"), found);
            }
        }
        _ => {}
    }
}

/// Whether a case runs in this process, and holds to one outcome.
fn is_plain(expected: &Value) -> bool {
    let needs = expected["needs"].as_array().cloned().unwrap_or_default();
    expected.get("run_with").is_none() && expected["either"] != true && needs.is_empty()
}

#[test]
fn every_expectation_of_the_corpus_counts() {
    let mut tried = BTreeSet::new();
    let (mut cases, _) = conformance(&modeldir_fixtures::conformance_dir()).unwrap();
    cases.extend(cases_in("corpus", &modeldir_fixtures::corpus_dir()).unwrap());
    for case in cases {
        let expected = case.expected().unwrap();
        if !is_plain(&expected) {
            continue;
        }
        let mut found = Vec::new();
        places(&expected, "", &mut found);
        let mut seen = Vec::new();
        for (place, name) in found {
            if seen.contains(&name) {
                continue; // One of each kind for a case keeps this quick.
            }
            seen.push(name);
            let mut other = expected.clone();
            let value = other.pointer_mut(&place).unwrap();
            let (_, change) = EXPECTATIONS.iter().find(|(known, _)| *known == name).unwrap();
            *value = change(value);
            let outcome = case.clone().expecting(other).run();
            assert!(outcome.is_err(), "{} passes with another {place}", case.name());
            tried.insert(name);
        }
    }
    let untried: Vec<_> =
        EXPECTATIONS.iter().map(|(name, _)| *name).filter(|name| !tried.contains(name)).collect();
    // These are in the directory below.
    assert_eq!(untried, ["joined_sha256", "count", "lengths_sum", "empty_ranks"]);
}

/// A directory of two shards with a configuration, and everything that can be said of it.
fn directory() -> (TempDir, Value) {
    let made = |name| modeldir_fixtures::Tensor::random(name, "F32", &[4, 2]);
    let parent = tempfile::tempdir().unwrap();
    let model = modeldir_fixtures::ShardedModel::new(2)
        .tensor(1, made("a"))
        .tensor(2, made("b"))
        .file("config.json", r#"{"hidden_size": 8, "limit": [0.0, Infinity]}"#)
        .file("adapter_model.safetensors", modeldir_fixtures::file(&[made("c")]));
    model.write(&parent.path().join("case/model")).unwrap();
    let row = |name| {
        let tensor = made(name);
        json!({"dtype": "F32", "shape": [4, 2], "nbytes": 32, "sha256": tensor.sha256()})
    };
    let part = made("a").cut(&[Some((1, 3)), None]);
    let expected = json!({
        "id": "case", "kind": "ok", "target": "model", "open_as": "dir",
        "tensors": {"a": row("a"), "b": row("b")}, "complete": true, "count": 2, "absent": ["c"],
        "planned_bytes": 64, "ignored_files": ["adapter_model.safetensors"],
        "config": {"/hidden_size": 8, "/limit/1": "inf"},
        "queries": [
            {"op": "slice", "tensor": "a", "ranges": [[1, 3], null], "dtype": "F32",
             "shape": [2, 2], "sha256": part.sha256()},
            {"op": "split", "tensor": "a", "axis": 0, "world": 3, "lengths_sum": 4,
             "joined_sha256": made("a").sha256()},
            {"op": "filter", "keep": ["b"], "bytes": 32},
            {"op": "by_file", "world": 3, "union": "all files once", "empty_ranks": 1},
            {"op": "get", "tensor": "d", "kind": "error", "error_mentions": ["\"d\""]},
        ],
    });
    (parent, expected)
}

fn run(parent: &TempDir, expected: &Value) -> Result<Outcome, String> {
    let folder = parent.path().join("case");
    fs::write(folder.join("expected.json"), expected.to_string()).unwrap();
    Case::new("made", &folder).run()
}

#[test]
fn every_expectation_of_a_directory_counts() {
    let (parent, expected) = directory();
    assert_eq!(run(&parent, &expected), Ok(Outcome::Passed));
    let mut changes: Vec<(String, Value)> = vec![
        ("/config/~1hidden_size".into(), json!(9)),
        ("/config/~1limit~11".into(), json!("-inf")),
        ("/absent/0".into(), json!("a")),
        ("/queries/2/keep/0".into(), json!("a b")),
        ("/queries/4/tensor".into(), json!("a")),
    ];
    let mut found = Vec::new();
    places(&expected, "", &mut found);
    for (place, name) in found {
        let (_, change) = EXPECTATIONS.iter().find(|(known, _)| *known == name).unwrap();
        changes.push((place.clone(), change(expected.pointer(&place).unwrap())));
    }
    for (place, value) in changes {
        let mut other = expected.clone();
        *other.pointer_mut(&place).unwrap() = value;
        assert!(run(&parent, &other).is_err(), "passes with another {place}: {other}");
    }
}

#[test]
fn what_the_runner_does_not_know_is_a_failure() {
    let (parent, expected) = directory();
    let additions = [
        ("", "sha512", json!("x")),
        ("/tensors/a", "strides", json!([1])),
        ("/queries/0", "step", json!(2)),
        ("/queries/2", "suggests", json!("b")),
        ("/queries/0", "op", json!("reshape")),
        ("/queries/3", "union", json!("some files")),
        ("", "needs", json!(["a_gpu"])),
        ("", "kind", json!("maybe")),
        ("", "stage", json!("open")),
        ("", "open_as", json!("archive")),
        ("", "id", json!("another")),
        ("", "mutate_after_open", json!([{"op": "touch", "path": "model"}])),
        ("", "run_with", json!({"rlimit_as": 1})),
    ];
    for (place, key, value) in additions {
        let mut other = expected.clone();
        other.pointer_mut(place).unwrap()[key] = value;
        assert!(run(&parent, &other).is_err(), "passes with {place}/{key}");
    }
}

#[test]
fn a_case_without_a_check_is_a_failure() {
    let (parent, _) = directory();
    let nothing = json!({"kind": "ok", "target": "model", "open_as": "dir"});
    assert!(run(&parent, &nothing).is_err());
    let silent = json!({"kind": "error", "stage": "open", "target": "gone", "open_as": "dir"});
    assert!(run(&parent, &silent).is_err());
    let empty = tempfile::tempdir().unwrap();
    assert!(cases_in("empty", empty.path()).is_err());
    assert!(cases_in("absent", &empty.path().join("absent")).is_err());
}
