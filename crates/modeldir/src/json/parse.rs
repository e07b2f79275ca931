//! Tolerant parsing: strict JSON first, then JSON with the non-finite numbers of Python.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tensorfile::{Lookalike, shortened};

use super::deep::on_enough_stack;
use super::duplicates::duplicate_keys;
use super::error::JsonError;
use super::non_finite::{original_offset, rewrite};
use crate::Result;

/// The most memory for the value of one text, by a generous estimate: 1 GiB.
///
/// The tokenizers of large vocabularies need a quarter of it. A text of repeated `{"":0},` needs a
/// hundred times its own length.
const MAX_VALUE_BYTES: u64 = 1 << 30;

/// The object or list of a JSON text; non-finite numbers become objects such as `{"__float__":
/// "NaN"}`.
pub(crate) fn parse(text: &str) -> Result<Value> {
    let (value, _) = parse_accepted(text)?;
    if value.is_object() || value.is_array() {
        return Ok(value);
    }
    Err(wrong_kind(text, "an object or a list", &value).into())
}

/// [`parse`] for a text that must be an object, with a note for each duplicate key.
pub(crate) fn parse_object(text: &str) -> Result<(Map<String, Value>, Vec<String>)> {
    let (value, rewritten) = parse_accepted(text)?;
    let Value::Object(object) = value else {
        return Err(wrong_kind(text, "an object", &value).into());
    };
    let parsed = rewritten.as_deref().unwrap_or(text);
    let notes = on_enough_stack(parsed, || duplicate_keys(parsed))?;
    Ok((object, notes))
}

/// The error for a JSON value of another kind than expected.
fn wrong_kind(text: &str, expected: &str, found: &Value) -> JsonError {
    let (line, column) = position(text, text.len().saturating_sub(text.trim_start().len()));
    let message = format!("expected {expected}, found {}", super::kind(found)).into();
    JsonError::Syntax { line, column, message }
}

/// The value, and the rewritten text if that was parsed in place of `text`.
fn parse_accepted(text: &str) -> Result<(Value, Option<String>)> {
    check_size(text)?;
    let strict = match from_str(text)? {
        Ok(value) => return Ok((value, None)),
        Err(error) => error,
    };
    let Some(rewritten) = rewrite(text) else {
        return Err(syntax_error(text, text, &strict).into());
    };
    check_size(&rewritten)?;
    match from_str(&rewritten)? {
        Ok(value) => Ok((value, Some(rewritten))),
        Err(error) => Err(syntax_error(text, &rewritten, &error).into()),
    }
}

/// The value of a JSON text, or the parser's error, on a sufficient stack.
pub(crate) fn from_str<T: DeserializeOwned + Send>(text: &str) -> Result<serde_json::Result<T>> {
    on_enough_stack(text, || serde_json::from_str(text))
}

/// Refuses a text whose value would exceed [`MAX_VALUE_BYTES`].
fn check_size(text: &str) -> Result<(), JsonError> {
    let cost = |byte| match byte {
        b'{' => 768,
        b'[' | b',' => 144,
        _ => 0,
    };
    let needed = text.bytes().map(cost).sum();
    if needed > MAX_VALUE_BYTES {
        return Err(JsonError::TooDense { needed, max: MAX_VALUE_BYTES });
    }
    Ok(())
}

/// The error of parsing `parsed`, with positions in the original text.
pub(crate) fn syntax_error(text: &str, parsed: &str, error: &serde_json::Error) -> JsonError {
    let offset = original_offset(text, offset_of(parsed, error.line(), error.column()));
    let (line, column) = position(text, offset);
    let start = start_of(text);
    match Lookalike::of(text.as_bytes()) {
        looks_like
            if !matches!(looks_like, Lookalike::Json | Lookalike::Unknown) && !start.is_empty() =>
        {
            JsonError::NotJson { line, column, looks_like, start }
        }
        _ => {
            let message = error.to_string();
            // serde_json ends its messages with the position in `parsed`.
            let message = message.rsplit_once(" at line ").map_or(&*message, |(what, _)| what);
            JsonError::Syntax { line, column, message: shortened(message) }
        }
    }
}

/// The start of a file of another kind, for an error.
pub(crate) fn start_of(text: &str) -> Box<str> {
    let start: String = text.trim_start().chars().take(60).collect();
    start.trim_end().into()
}

/// The byte at a position as serde_json counts them: lines from 1, columns in bytes from 1.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    before.saturating_add(column.saturating_sub(1)).min(text.len())
}

/// Line and column of a byte; both start at 1, and columns are characters.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut ends = (0..=offset.min(text.len())).rev();
    let before = ends.find_map(|end| text.get(..end)).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.split('\n').count(), line.chars().count().saturating_add(1))
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "of small lists")]
mod tests {
    use serde_json::json;

    use super::{JsonError, parse, parse_object, position};
    use crate::ErrorKind;

    const PATH: &str = "config.json";

    fn fails(text: &str) -> String {
        parse(text).unwrap_err().at(PATH).to_string()
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
            ("[1000000000000000019884624838656]", json!([1e30])),
            ("{\r\n\"a\":\r\n-1}\r\n", json!({ "a": -1 })),
        ];
        for (text, value) in cases {
            assert_eq!(parse(text).unwrap(), value, "{text}");
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
            ("PK\u{3}\u{4}", "line 1 column 1: not JSON: it looks like a zip archive"),
            (
                "Entry not found",
                "line 1 column 1: not JSON: it looks like text: \"Entry not found\"",
            ),
        ];
        for (text, message) in cases {
            let error = fails(text);
            assert!(error.starts_with(&format!("config.json: {message}")), "{error}");
            let kind = parse(text).unwrap_err().into_kind();
            assert!(matches!(kind, ErrorKind::Json(JsonError::NotJson { .. })), "{kind:?}");
        }
    }

    #[test]
    fn an_object_is_asked_for() {
        for (text, found) in
            [("[]", "a list"), ("\"Not Found\"", "a string"), ("404", "the number 404")]
        {
            let error = parse_object(text).unwrap_err().to_string();
            assert!(
                error.ends_with(&format!("column 1: expected an object, found {found}")),
                "{error}"
            );
        }
    }

    #[test]
    fn the_last_duplicate_counts_and_is_noted() {
        let (object, notes) = parse_object(r#"{"a": 1, "a": NaN}"#).unwrap();
        assert_eq!(object["a"], json!({ "__float__": "NaN" }));
        assert_eq!(notes, ["duplicate key \"a\": the last one wins"]);
    }

    #[test]
    fn deep_nests_are_errors_on_a_small_stack() {
        let deep = |open: &str, close: &str, levels: usize| {
            let text = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
            let error = fails(&text);
            assert!(error.contains("recursion limit exceeded"), "{error}");
            let shallow = format!("{{\"a\":{}1{}}}", open.repeat(levels), close.repeat(levels));
            assert!(parse_object(&shallow).is_ok());
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
    fn texts_that_would_fill_the_memory_are_refused() {
        let text = format!("[{}0]", "{\"\":0},".repeat(1_200_000));
        let kind = |text| parse(text).unwrap_err().into_kind();
        let refused = kind(&text);
        assert!(matches!(refused, ErrorKind::Json(JsonError::TooDense { .. })), "{refused:?}");
        let refused = kind(&text[..80]);
        assert!(matches!(refused, ErrorKind::Json(JsonError::Syntax { .. })), "{refused:?}");
    }

    #[test]
    fn positions_count_characters() {
        assert_eq!(position("", 0), (1, 1));
        assert_eq!(position("é\nxé", 6), (2, 3));
        assert_eq!(position("é\nxé", 1), (1, 1));
    }
}
