//! Versioned file names: a directory can keep one file for each version of its reader.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use serde_json::Value;

/// The maximum number of versions returned. Real lists have one or two, and each costs a look-up.
const MAX_VERSIONS: usize = 32;

/// The names of the form `STEM.1.2.3.json` in a JSON list, highest version first, without
/// duplicates, at most 32.
///
/// Names of any other form are left out, so that none leads out of the directory.
pub(crate) fn newest_first<'a>(list: Option<&'a Value>, stem: &str) -> Vec<&'a str> {
    let names = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut versions: Vec<_> =
        names.filter_map(|name| Some((version(name, stem)?, name))).collect();
    versions.sort();
    versions.dedup();
    versions.into_iter().rev().take(MAX_VERSIONS).map(|(_, name)| name).collect()
}

/// The version in a name of the form `STEM.1.2.3.json`.
pub(crate) fn version(name: &str, stem: &str) -> Option<Vec<u32>> {
    let digits = name.strip_prefix(stem)?.strip_prefix('.')?.strip_suffix(".json")?;
    let plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    digits.split('.').map(|part| part.parse().ok().filter(|_| plain(part))).collect()
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "of small lists")]
mod tests {
    use serde_json::json;

    use super::{MAX_VERSIONS, newest_first};

    #[test]
    fn of_a_long_list_the_newest_are_looked_for_and_each_once() {
        let names: Vec<_> = (0..100_000).map(|i| format!("config.{}.json", i / 2)).collect();
        let list = json!(names);
        let newest = newest_first(Some(&list), "config");
        assert_eq!((newest.len(), newest[0]), (MAX_VERSIONS, "config.49999.json"));
        assert!(newest.is_sorted_by(|a, b| a > b), "{newest:?}");
    }

    #[test]
    fn versions_sort_by_number_and_other_names_are_left_out() {
        let list = json!([
            "config.4.9.0.json",
            "config.4.10.0.json",
            "config.json",
            "config.4/../../x.json",
            "config.+1.json",
            "tokenizer.5.json",
            7
        ]);
        assert_eq!(
            newest_first(Some(&list), "config"),
            ["config.4.10.0.json", "config.4.9.0.json"]
        );
        assert_eq!(newest_first(None, "config"), [""; 0]);
    }
}
