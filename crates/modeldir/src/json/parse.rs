//! Tolerant parsing: strict JSON first, then with the non-finite numbers that Python writes.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use tensorfile::{Lookalike, Quoted};

use crate::{Error, Result};

/// The literals that Python's `json` writes and JSON does not have; the longest comes first.
const LITERALS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Notes on one file; more than these are not kept.
const MAX_NOTES: usize = 64;

/// The value of a JSON text; `NaN` and infinities become `{"__float__": "NaN"}` and so on.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Value> {
    parse_accepted(path, text).map(|(value, _)| value)
}

/// As [`parse`], for a text that must hold an object, with a note for each duplicate key in it.
pub(crate) fn parse_object(path: &Path, text: &str) -> Result<(Map<String, Value>, Vec<String>)> {
    let (value, rewritten) = parse_accepted(path, text)?;
    let Value::Object(object) = value else {
        let message = format!("expected an object, found {}", super::kind(&value)).into();
        let (line, column) = position(text, text.len() - text.trim_start().len());
        return Err(Error::Json { path: path.to_owned(), line, column, message });
    };
    let mut notes = Vec::new();
    let mut json = serde_json::Deserializer::from_str(rewritten.as_deref().unwrap_or(text));
    // The text has been parsed a moment ago, so that this pass meets no error.
    Keys(&mut notes).deserialize(&mut json).ok();
    Ok((object, notes))
}

/// The value, and the text that was parsed in the end if it is not `text` itself.
fn parse_accepted(path: &Path, text: &str) -> Result<(Value, Option<String>)> {
    let strict = match serde_json::from_str(text) {
        Ok(value) => return Ok((value, None)),
        Err(error) => error,
    };
    let Some(rewritten) = rewrite(text) else {
        return Err(syntax_error(path, text, text, &strict));
    };
    match serde_json::from_str(&rewritten) {
        Ok(value) => Ok((value, Some(rewritten))),
        Err(error) => Err(syntax_error(path, text, &rewritten, &error)),
    }
}

/// The text with each non-finite literal as an object, as transformers 5 writes them.
fn rewrite(text: &str) -> Option<String> {
    let mut literals = Literals { text, at: 0 }.peekable();
    literals.peek()?;
    let mut rewritten = String::with_capacity(text.len());
    let mut copied = 0;
    for (range, name) in literals {
        rewritten.push_str(&text[copied..range.start]);
        rewritten.push_str(&replacement(name));
        copied = range.end;
    }
    rewritten.push_str(&text[copied..]);
    Some(rewritten)
}

/// What stands for a non-finite literal.
fn replacement(name: &str) -> String {
    format!(r#"{{"__float__":"{name}"}}"#)
}

/// Iterates over the non-finite literals of a JSON text that stand outside its strings.
struct Literals<'a> {
    text: &'a str,
    at: usize,
}

impl Iterator for Literals<'_> {
    type Item = (Range<usize>, &'static str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'"' => self.at = string_end(bytes, self.at),
                b'-' | b'I' | b'N' => {
                    if let Some(name) = literal_at(bytes, self.at) {
                        let start = self.at;
                        self.at += name.len();
                        return Some((start..self.at, name));
                    }
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        None
    }
}

/// Where the string ends that opens at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The literal at `start`, if it is not part of a longer word.
fn literal_at(bytes: &[u8], start: usize) -> Option<&'static str> {
    let in_word =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_+-.$".contains(byte) || *byte > 127;
    let before = start.checked_sub(1).and_then(|i| bytes.get(i));
    let rest = bytes.get(start..)?;
    let name = LITERALS.into_iter().find(|name| rest.starts_with(name.as_bytes()))?;
    let joined = before.is_some_and(in_word) || rest.get(name.len()).is_some_and(in_word);
    (!joined).then_some(name)
}

/// The error of a parse of `parsed`, told in terms of the original text.
pub(crate) fn syntax_error(
    path: &Path,
    text: &str,
    parsed: &str,
    error: &serde_json::Error,
) -> Error {
    let path = path.to_owned();
    let offset = original_offset(text, offset_of(parsed, error.line(), error.column()));
    let (line, column) = position(text, offset);
    match text.trim_start().chars().next() {
        None | Some('{' | '[') => {
            let message = error.to_string();
            // serde_json ends its messages with the position in the text that it was given.
            let message = message.rsplit_once(" at line ").map_or(&*message, |(what, _)| what);
            Error::Json { path, line, column, message: message.into() }
        }
        Some(first) => {
            let looks_like = if first == '<' { Lookalike::Html } else { Lookalike::Text };
            let start: String = text.trim_start().chars().take(60).collect();
            Error::NotJson { path, line, column, looks_like, start: start.trim_end().into() }
        }
    }
}

/// The byte at a position as serde_json counts them: lines from 1, columns in bytes from 1.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column.saturating_sub(1)).min(text.len())
}

/// The byte of `text` that a byte of its rewritten form stands for.
fn original_offset(text: &str, rewritten_offset: usize) -> usize {
    let mut grown = 0;
    for (range, name) in (Literals { text, at: 0 }) {
        let start = range.start + grown;
        if rewritten_offset < start {
            break;
        }
        let byte_len = replacement(name).len();
        if rewritten_offset < start + byte_len {
            return range.start;
        }
        grown += byte_len - name.len();
    }
    rewritten_offset - grown
}

/// Line and column of a byte; both count from 1, and columns are characters.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Walks a JSON value and notes the keys that an object has twice.
struct Keys<'n>(&'n mut Vec<String>);

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if seen.contains(&key) && self.0.len() < MAX_NOTES {
                self.0.push(format!("duplicate key {}: the last one counts", Quoted(&key)));
            }
            seen.insert(key);
            map.next_value_seed(Keys(&mut *self.0))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Keys(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::{Error, parse, parse_object, position, rewrite};

    const PATH: &str = "config.json";

    fn fails(text: &str) -> String {
        parse(Path::new(PATH), text).unwrap_err().to_string()
    }

    #[test]
    fn non_finite_literals_become_objects() {
        let float = |name: &str| json!({ "__float__": name });
        let cases = [
            ("[0.0,Infinity]", json!([0.0, float("Infinity")])),
            ("[-Infinity , NaN]", json!([float("-Infinity"), float("NaN")])),
            ("{\"a\":NaN}", json!({ "a": float("NaN") })),
            (r#"["NaN","\"Infinity",NaN]"#, json!(["NaN", "\"Infinity", float("NaN")])),
            (r#"["\\",Infinity]"#, json!(["\\", float("Infinity")])),
            ("NaN", float("NaN")),
            ("[1000000000000000019884624838656]", json!([1e30])),
            ("{\r\n\"a\":\r\n-1}\r\n", json!({ "a": -1 })),
        ];
        for (text, value) in cases {
            assert_eq!(parse(Path::new(PATH), text).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn only_whole_words_are_literals() {
        for text in ["[Infinityx]", "[--Infinity]", "[-NaN]", "[xNaN]", "[NaN1]", "[+Infinity]"] {
            assert_eq!(rewrite(text), None, "{text}");
            assert!(fails(text).starts_with("config.json: line 1 column"), "{text}");
        }
    }

    #[test]
    fn errors_give_the_original_position() {
        let cases = [
            ("{\n  \"hidden_size\": 8,\n  \"head_dim\": ,\n}", "line 3 column 15: expected value"),
            ("{\"a\": Infinity, \"b\": }", "line 1 column 22: expected value"),
            ("{\"a\": [NaN, NaN],\n \"b\": -Infinity, x}", "line 2 column 18: key must be"),
            ("{\"a\": Infinity Infinity}", "line 1 column 16: expected `,` or `}`"),
            ("{Infinity: 1}", "line 1 column 2: key must be a string"),
            ("{\"漢字\": Infinity, \"é\": }", "line 1 column 23: expected value"),
            ("{\"a\": 1}\n=======\n{}", "line 2 column 1: trailing characters"),
            ("{\"a\": \"b", "line 1 column 8: EOF while parsing a string"),
            ("{\n", "line 2 column 1: EOF while parsing an object"),
            ("{\r\n\"a\": nul}\r\n", "line 2 column 9: expected ident"),
            (" \n ", "line 2 column 1: EOF while parsing a value"),
            ("{\"a\": 1e999}", "line 1 column 11: number out of range"),
        ];
        for (text, message) in cases {
            let error = fails(text);
            assert!(error.starts_with(&format!("config.json: {message}")), "{error}");
        }
    }

    #[test]
    fn says_what_it_looks_like_when_it_is_not_json() {
        let cases = [
            (
                "404: Not Found",
                r#"line 1 column 4: not JSON: it looks like text: "404: Not Found""#,
            ),
            ("\n<!DOCTYPE html>\n<html>", "line 2 column 1: not JSON: it looks like a web page"),
            (
                "Entry not found",
                "line 1 column 1: not JSON: it looks like text: \"Entry not found\"",
            ),
        ];
        for (text, message) in cases {
            let error = fails(text);
            assert!(error.starts_with(&format!("config.json: {message}")), "{error}");
            assert!(matches!(parse(Path::new(PATH), text), Err(Error::NotJson { .. })));
        }
    }

    #[test]
    fn an_object_is_asked_for() {
        for (text, found) in
            [("[]", "a list"), ("\"Not Found\"", "a string"), ("404", "the number 404")]
        {
            let error = parse_object(Path::new(PATH), text).unwrap_err().to_string();
            assert!(
                error.ends_with(&format!("column 1: expected an object, found {found}")),
                "{error}"
            );
        }
    }

    #[test]
    fn the_last_duplicate_counts_and_is_noted() {
        let text = r#"{"a": 1, "\u0061": NaN, "b": [{"c": 1, "c": 2}], "d": {"a": 0}, "a": 3}"#;
        let (object, notes) = parse_object(Path::new(PATH), text).unwrap();
        assert_eq!(object["a"], 3);
        assert_eq!(object["b"], json!([{ "c": 2 }]));
        let note = |key: &str| format!("duplicate key \"{key}\": the last one counts");
        assert_eq!(notes, [note("a"), note("c"), note("a")]);
    }

    #[test]
    fn notes_are_bounded() {
        let text = format!("{{{}\"a\":1}}", "\"a\":1,".repeat(1000));
        assert_eq!(parse_object(Path::new(PATH), &text).unwrap().1.len(), super::MAX_NOTES);
    }

    #[test]
    fn deep_nests_are_errors_on_a_small_stack() {
        let deep = |open: &str, close: &str, levels: usize| {
            let text = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
            let error = fails(&text);
            assert!(error.contains("recursion limit exceeded"), "{error}");
            let shallow = format!("{{\"a\":{}1{}}}", open.repeat(levels), close.repeat(levels));
            assert!(parse_object(Path::new(PATH), &shallow).is_ok());
        };
        std::thread::Builder::new()
            .stack_size(256 << 10)
            .spawn(move || {
                deep("[", "]", 126);
                deep("{\"a\":", "}", 126);
                deep("[NaN,", "]", 125);
                deep("[{\"a\":[", "]}]", 42);
            })
            .unwrap()
            .join()
            .unwrap();
    }

    #[test]
    fn positions_count_characters() {
        assert_eq!(position("", 0), (1, 1));
        assert_eq!(position("é\nxé", 6), (2, 3));
        assert_eq!(position("é\nxé", 1), (1, 1));
    }
}
