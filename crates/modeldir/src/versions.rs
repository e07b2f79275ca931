//! Names of files that a directory keeps for several versions of their reader.

use serde_json::Value;

/// The names of the form `STEM.1.2.3.json` in a JSON list, those of the highest version first.
///
/// Names of any other form are left out, so that none can lead out of the directory.
pub(crate) fn newest_first<'a>(list: Option<&'a Value>, stem: &str) -> Vec<&'a str> {
    let names = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut versions: Vec<_> =
        names.filter_map(|name| Some((version(name, stem)?, name))).collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, name)| name).collect()
}

/// The version in a name of the form `STEM.1.2.3.json`.
pub(crate) fn version(name: &str, stem: &str) -> Option<Vec<u32>> {
    let digits = name.strip_prefix(stem)?.strip_prefix('.')?.strip_suffix(".json")?;
    let plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    digits.split('.').map(|part| part.parse().ok().filter(|_| plain(part))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::newest_first;

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
