//! Replaces strings of a JSON text in place, so that no other character changes; pure.

use std::ops::Range;

use serde_json::Value;

use super::non_finite::string_end;

/// The text with `with` in place of each string that is at one of these paths of keys and for which
/// `choose` returns true. No other character changes.
///
/// The text must be valid JSON. No path leads into a list.
pub(crate) fn replace_strings<P: AsRef<[K]>, K: AsRef<str>>(
    text: &str,
    paths: &[P],
    with: &str,
    choose: impl Fn(&str) -> bool,
) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut copied = 0;
    for place in strings_under(text, paths) {
        if choose(&unescaped(text, &place)) {
            replaced.push_str(text.get(copied..place.start).unwrap_or_default());
            replaced.push_str(&Value::from(with).to_string());
            copied = place.end;
        }
    }
    replaced.push_str(text.get(copied..).unwrap_or_default());
    replaced
}

/// The ranges of the strings at these paths, with their quotes.
fn strings_under<P: AsRef<[K]>, K: AsRef<str>>(text: &str, paths: &[P]) -> Vec<Range<usize>> {
    let longest = paths.iter().map(|path| path.as_ref().len()).max().unwrap_or(0);
    let is_path =
        |keys: &[String]| paths.iter().any(|path| path.as_ref().iter().map(AsRef::as_ref).eq(keys));
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    // The number of open objects outside lists, and their keys, as deep as the longest path.
    let (mut depth, mut keys) = (0_usize, Vec::<String>::new());
    let (mut lists, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        let end = if *byte == b'"' { string_end(bytes, at) } else { at.saturating_add(1) };
        match byte {
            b'[' => lists = lists.saturating_add(1),
            b']' => lists = lists.saturating_sub(1),
            _ if lists > 0 => {}
            b'{' => depth = depth.saturating_add(1),
            b'}' => {
                depth = depth.saturating_sub(1);
                keys.truncate(depth);
            }
            b'"' if is_key(bytes, end) => {
                keys.truncate(depth.saturating_sub(1));
                if depth <= longest {
                    keys.push(unescaped(text, &(at..end)));
                }
            }
            b'"' if keys.len() == depth && is_path(&keys) => found.push(at..end),
            _ => {}
        }
        at = end;
    }
    found
}

/// Whether the string that ends here is a key.
fn is_key(bytes: &[u8], end: usize) -> bool {
    let rest = bytes.get(end..).unwrap_or_default();
    rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

/// The value of a string with its quotes.
fn unescaped(text: &str, place: &Range<usize>) -> String {
    text.get(place.clone()).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::replace_strings;

    #[test]
    fn strings_under_the_paths_are_replaced_and_nothing_else() {
        let paths = [&["a"][..], &["t", "a"], &["t", "u", "a"], &["a", ""]];
        for (text, expected) in [
            ("{\"a\": \"x\"}", "{\"a\": \"NEW\"}"),
            (
                " {\n\t\"z\":1,\"a\"\r\n:  \"x\" , \"b\":\"x\"}\n",
                " {\n\t\"z\":1,\"a\"\r\n:  \"NEW\" , \"b\":\"x\"}\n",
            ),
            // Deeper, and by a path of which a key is empty.
            (
                r#"{"t":{"a":"x","u":{"a":"x","v":{"a":"x"}},"a":"y"},"a":{"":"x","b":"x"}}"#,
                r#"{"t":{"a":"NEW","u":{"a":"NEW","v":{"a":"x"}},"a":"NEW"},"a":{"":"NEW","b":"x"}}"#,
            ),
            // Lists, and values that are not strings at a path.
            (r#"{"t":[{"a":"x"}],"a":["x"]}"#, r#"{"t":[{"a":"x"}],"a":["x"]}"#),
            (r#"{"l":[[]],"a":null,"x":{"a":"x"}}"#, r#"{"l":[[]],"a":null,"x":{"a":"x"}}"#),
            (r#"{"b":"a","c":"\"a\":\"x\""}"#, r#"{"b":"a","c":"\"a\":\"x\""}"#),
            // Keys with escapes, keys given twice, and words that JSON does not have.
            (r#"{"\u0061":"x","n":NaN,"a":"\u0078"}"#, r#"{"\u0061":"NEW","n":NaN,"a":"NEW"}"#),
            (r#"{"a":"keep","t":{"a":"x"}}"#, r#"{"a":"keep","t":{"a":"NEW"}}"#),
            ("\u{feff}{\"ä\":\"x\",\"a\":\"漢\"}", "\u{feff}{\"ä\":\"x\",\"a\":\"NEW\"}"),
        ] {
            assert_eq!(replace_strings(text, &paths, "NEW", |s| s != "keep"), expected);
        }
    }

    #[test]
    fn what_is_no_json_is_no_danger() {
        for text in
            ["", "\"", "{\"a", "{\"a\":\"\\", "]]}}{\"a\":\"x\"", "{{{{\"a\":\"x\"", "\"a\":\"x\""]
        {
            let replaced = replace_strings(text, &[&["a"]], "NEW", |_| true);
            assert!(replaced.len() <= text.len() + 5, "{text}");
        }
        let deep = "{\"a\":".repeat(100_000);
        assert_eq!(replace_strings(&deep, &[&["a"]], "NEW", |_| true), deep);
    }
}
