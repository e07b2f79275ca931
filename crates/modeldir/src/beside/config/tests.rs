//! Configurations of one text, and of directories with several.

use std::fs;

use super::ModelConfig;
use crate::ErrorKind;
use crate::json::JsonError;

const MAX: u64 = 1 << 20;

#[test]
fn a_wrong_type_is_a_note_and_the_rest_is_read() {
    let json = br#"{"hidden_size": "8", "architectures": "A", "vocab_size": 10, "vocab_size": 9}"#;
    let config = ModelConfig::from_json("config.json", json).unwrap();
    assert_eq!((config.hidden_size(), config.vocab_size()), (None, Some(9)));
    assert_eq!(
        config.notes(),
        [
            "config.json: duplicate key \"vocab_size\": the last one wins",
            "config.json: architectures: expected a list of strings, found a string",
            "config.json: hidden_size: expected a whole number, found a string",
        ]
    );
}

#[test]
fn numbers_that_json_lacks_are_read_by_pointer() {
    let json = br#"{"a": [0.0, Infinity], "b": {"__float__": "NaN"}, "c": 1e30, "d": "x"}"#;
    let config = ModelConfig::from_json("config.json", json).unwrap();
    assert_eq!(config.number("/a/0"), Some(0.0));
    assert_eq!(config.number("/a/1"), Some(f64::INFINITY));
    assert!(config.number("/b").unwrap().is_nan());
    assert_eq!(config.number("/d"), None);
}

#[test]
fn a_directory_has_config_json_or_params_json_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let read = || ModelConfig::in_directory(dir.path(), MAX);
    let refused = || read().unwrap_err().into_kind();
    let put = |name, text| fs::write(dir.path().join(name), text).unwrap();
    assert!(matches!(refused(), ErrorKind::NoFile { what: "config.json" }));
    put("params.json", r#"{"dim": 8}"#);
    assert_eq!(read().unwrap().hidden_size(), Some(8));
    assert_eq!(read().unwrap().path(), dir.path().join("params.json"));
    put("config.json", "{");
    assert!(matches!(refused(), ErrorKind::Json(JsonError::Syntax { .. })));
    assert_eq!(read().unwrap_err().path(), Some(&*dir.path().join("config.json")));
    put("config.json", r#"{"hidden_size": 16}"#);
    assert_eq!(read().unwrap().hidden_size(), Some(16));
}

#[test]
fn the_newest_version_that_config_json_names_counts() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name, text| fs::write(dir.path().join(name), text).unwrap();
    let names =
        r#"{"vocab_size": 1, "configuration_files": ["config.4.9.json", "config.4.10.json"]}"#;
    put("config.json", names);
    let vocab_size = || ModelConfig::in_directory(dir.path(), MAX).unwrap().vocab_size();
    assert_eq!(vocab_size(), Some(1));
    put("config.4.9.json", r#"{"vocab_size": 9}"#);
    assert_eq!(vocab_size(), Some(9));
    put("config.4.10.json", r#"{"vocab_size": 10, "hidden_size": "8"}"#);
    assert_eq!(vocab_size(), Some(10));
    let config = ModelConfig::in_directory(dir.path(), MAX).unwrap();
    assert_eq!(config.path(), dir.path().join("config.4.10.json"));
    let [note] = config.notes() else { panic!("{:?}", config.notes()) };
    assert!(note.starts_with("config.4.10.json: hidden_size: expected"), "{note}");
}
