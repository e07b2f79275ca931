//! The non-finite numbers that Python writes as bare words: finding and replacing them.

use std::ops::Range;

/// Literals that Python's `json` writes and JSON lacks, longest first.
const LITERALS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// The text with an object for each non-finite literal, in the form of transformers 5; `None` if it
/// has none.
pub(super) fn rewrite(text: &str) -> Option<String> {
    replace(text, replacement)
}

/// The text with an empty list for each non-finite literal, padded so that offsets stay the same.
pub(crate) fn blank_non_finite(text: &str) -> Option<String> {
    replace(text, |name| format!("{:width$}", "[]", width = name.len()))
}

/// The text with each non-finite literal replaced; `None` if it has none.
fn replace(text: &str, with: impl Fn(&str) -> String) -> Option<String> {
    let mut literals = Literals { text, at: 0 }.peekable();
    literals.peek()?;
    let mut replaced = String::with_capacity(text.len());
    let mut copied = 0;
    for (range, name) in literals {
        replaced.push_str(text.get(copied..range.start).unwrap_or_default());
        replaced.push_str(&with(name));
        copied = range.end;
    }
    replaced.push_str(text.get(copied..).unwrap_or_default());
    Some(replaced)
}

/// The object for a non-finite literal.
fn replacement(name: &str) -> String {
    format!(r#"{{"__float__":"{name}"}}"#)
}

/// Iterates over the non-finite literals outside the strings of a JSON text.
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
                        self.at = self.at.saturating_add(name.len());
                        return Some((start..self.at, name));
                    }
                    self.at = self.at.saturating_add(1);
                }
                _ => self.at = self.at.saturating_add(1),
            }
        }
        None
    }
}

/// The end of the string that starts at `start`.
pub(super) fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start.saturating_add(1);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at.saturating_add(1),
            b'\\' => at = at.saturating_add(2),
            _ => at = at.saturating_add(1),
        }
    }
    bytes.len()
}

/// The literal at `start`, unless it is part of a longer word.
fn literal_at(bytes: &[u8], start: usize) -> Option<&'static str> {
    let in_word =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_+-.$".contains(byte) || *byte > 127;
    let before = start.checked_sub(1).and_then(|i| bytes.get(i));
    let rest = bytes.get(start..)?;
    let name = LITERALS.into_iter().find(|name| rest.starts_with(name.as_bytes()))?;
    let joined = before.is_some_and(in_word) || rest.get(name.len()).is_some_and(in_word);
    (!joined).then_some(name)
}

/// The offset in `text` that corresponds to an offset in its rewritten form.
pub(super) fn original_offset(text: &str, rewritten_offset: usize) -> usize {
    let mut grown = 0_usize;
    for (range, name) in (Literals { text, at: 0 }) {
        let start = range.start.saturating_add(grown);
        if rewritten_offset < start {
            break;
        }
        let byte_len = replacement(name).len();
        if rewritten_offset < start.saturating_add(byte_len) {
            return range.start;
        }
        grown = grown.saturating_add(byte_len.saturating_sub(name.len()));
    }
    rewritten_offset.saturating_sub(grown)
}

#[cfg(test)]
mod tests {
    use super::{blank_non_finite, original_offset, rewrite};

    #[test]
    fn only_whole_words_are_literals() {
        for text in ["[Infinityx]", "[--Infinity]", "[-NaN]", "[xNaN]", "[NaN1]", "[+Infinity]"] {
            assert_eq!(rewrite(text), None, "{text}");
        }
    }

    #[test]
    fn blanks_are_as_long_as_what_they_stand_for() {
        let blanked = blank_non_finite(r#"["NaN", NaN, -Infinity,Infinity]"#);
        assert_eq!(blanked.as_deref(), Some(r#"["NaN", [] , []       ,[]      ]"#));
        assert_eq!(blank_non_finite("[1]"), None);
    }

    #[test]
    fn offsets_lead_back_to_the_text() {
        let text = "[NaN, 1, -Infinity]";
        let rewritten = rewrite(text).unwrap();
        for (part, offset) in [("[", 0), ("{", 1), ("NaN", 1), (", 1", 4), ("1, {", 6), ("]", 18)] {
            assert_eq!(original_offset(text, rewritten.find(part).unwrap()), offset, "{part}");
        }
    }
}
