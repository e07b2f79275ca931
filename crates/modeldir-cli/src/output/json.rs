//! Printed JSON.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use serde_json::Value;

use super::stdout::Output;

/// Writes a JSON value over several lines.
///
/// # Errors
///
/// Those of writing.
pub(crate) fn print_json(value: &Value, out: &mut Output) -> io::Result<()> {
    writeln!(out, "{}", harmless(&format!("{value:#}")))
}

/// Returns a JSON value as one line.
pub(crate) fn one_line(value: &Value) -> String {
    harmless(&value.to_string())
}

/// Returns a path as JSON text, with replacement characters for invalid Unicode.
pub(crate) fn path_json(path: &Path) -> String {
    path.display().to_string()
}

/// Returns JSON text with escapes for all characters that a terminal interprets, such as direction
/// marks. JSON itself requires escapes for the first 32 characters alone.
fn harmless(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        let is_plain = c == '\n' || (c.is_ascii() && !c.is_control());
        if is_plain || (!c.is_ascii() && c.escape_debug().len() == 1) {
            text.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            // Writing to a `String` does not fail.
            let _written = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::harmless;

    #[test]
    fn nothing_that_a_terminal_acts_on_is_left_and_the_value_is_the_same() {
        let value = json!({ "a\u{202e}\u{85}": ["\u{7f}\u{1b}[m\n", "\u{e0001}", "é模👍"] });
        let text = harmless(&value.to_string());
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(text.contains("\\u202e\\u0085") && text.contains("\\udb40\\udc01"), "{text}");
        assert!(text.contains("é模👍") && !text.contains(['\u{7f}', '\u{1b}']), "{text}");
    }
}
