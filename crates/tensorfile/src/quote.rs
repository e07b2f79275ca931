//! Text from files, escaped and shortened for messages.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::fmt;
use std::path::Path;

/// The number of characters shown of a text.
const MAX_CHARS: usize = 120;

/// The number of characters that an error keeps of a text: more than are shown, so that the message
/// shows that it is cut.
const MAX_KEPT_CHARS: usize = 256;

/// Displays text from a file in quotes, escaped and cut after 120 characters.
///
/// Whoever made the file chose tensor names, metadata keys and index values. Control characters,
/// terminal escapes and format characters such as direction marks are written as escapes, so that a
/// name cannot forge a log line.
///
/// ```
/// use tensorfile::Quoted;
///
/// assert_eq!(Quoted("h.0.w").to_string(), r#""h.0.w""#);
/// assert_eq!(Quoted("a\n\u{1b}[31m").to_string(), r#""a\n\u{1b}[31m""#);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(MAX_CHARS) {
            None => fmt::Debug::fmt(self.0, f),
            Some((end, _)) => write!(f, "{:?}…", self.0.get(..end).unwrap_or_default()),
        }
    }
}

/// The text as an error keeps it: all of it up to 256 characters, else the first 256 and an
/// ellipsis.
///
/// For texts without a limit; tensor names are limited when the header is read.
#[must_use]
pub fn shortened(text: &str) -> Box<str> {
    match text.char_indices().nth(MAX_KEPT_CHARS) {
        None => text.into(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
    }
}

/// Characters shown of an escaped path; of a longer one the middle is left out, as the ends say
/// most.
const MAX_PATH_CHARS: usize = 1024;

/// Characters shown of the end of a longer path; the others are of its beginning.
const PATH_END_CHARS: usize = 384;

/// Displays a path without quotes: control and format characters are escaped, including direction
/// marks; invalid bytes become U+FFFD; of more than 1,024 characters the middle is left out.
///
/// ```
/// use std::path::Path;
/// use tensorfile::PathText;
///
/// assert_eq!(PathText(Path::new("a b/é\n.safetensors")).to_string(), "a b/é\\n.safetensors");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathText<'a>(pub &'a Path);

impl fmt::Display for PathText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string_lossy();
        let shown: usize = text.chars().map(shown_len).sum();
        if shown <= MAX_PATH_CHARS {
            return text.chars().try_for_each(|c| write_shown(f, c));
        }
        let (head, tail) = (MAX_PATH_CHARS - PATH_END_CHARS, PATH_END_CHARS);
        text.chars().take(within(text.chars(), head)).try_for_each(|c| write_shown(f, c))?;
        f.write_str("…")?;
        let skipped = text.chars().count().saturating_sub(within(text.chars().rev(), tail));
        text.chars().skip(skipped).try_for_each(|c| write_shown(f, c))
    }
}

/// How many leading characters take at most `max` characters when escaped.
fn within(chars: impl Iterator<Item = char>, max: usize) -> usize {
    let mut shown = 0_usize;
    let fits = |c: &char| {
        shown = shown.saturating_add(shown_len(*c));
        shown <= max
    };
    chars.take_while(fits).count()
}

/// The number of characters that one takes in the output, escaped if need be.
fn shown_len(c: char) -> usize {
    if c.is_control() || is_format(c) { c.escape_default().len() } else { 1 }
}

fn write_shown(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    if c.is_control() || is_format(c) {
        return write!(f, "{}", c.escape_default());
    }
    fmt::Write::write_char(f, c)
}

/// Whether a character is invisible or changes how others are displayed: the format characters of
/// Unicode 16 (category Cf) and the separators of lines and paragraphs.
const fn is_format(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::{MAX_PATH_CHARS, PathText, Quoted, shortened};
    use std::path::Path;

    #[test]
    fn paths_keep_letters_and_lose_direction_marks() {
        assert_eq!(PathText(Path::new("模/\u{202e}x")).to_string(), "模/\\u{202e}x");
    }

    #[test]
    fn escapes_direction_marks_and_quotes() {
        assert_eq!(Quoted("a\u{202e}b\"").to_string(), "\"a\\u{202e}b\\\"\"");
    }

    #[test]
    fn format_characters_are_escaped_everywhere() {
        // One of each range of category Cf, or both its ends.
        let format = "\u{ad}\u{600}\u{605}\u{61c}\u{6dd}\u{70f}\u{890}\u{891}\u{8e2}\u{180e}\u{200b}\u{200f}\
            \u{2028}\u{202a}\u{202e}\u{2060}\u{2064}\u{2066}\u{206f}\u{feff}\u{fff9}\u{fffb}\u{110bd}\u{110cd}\
            \u{13430}\u{1343f}\u{1bca0}\u{1bca3}\u{1d173}\u{1d17a}\u{e0001}\u{e0020}\u{e007f}";
        for c in format.chars() {
            let (text, escape) = (format!("a{c}b"), format!("a\\u{{{:x}}}b", u32::from(c)));
            assert_eq!(PathText(Path::new(&text)).to_string(), escape);
            assert_eq!(Quoted(&text).to_string(), format!("\"{escape}\""));
        }
    }

    #[test]
    fn letters_and_marks_of_any_script_stay() {
        for text in ["e\u{301}", "हिन्दी", "עברית", "العربية", "👍🏽"] {
            assert_eq!(PathText(Path::new(text)).to_string(), text);
        }
    }

    #[test]
    fn long_paths_keep_both_ends() {
        for (c, escaped) in [("é", "é"), ("\u{202e}", "\\u{202e}")] {
            let whole = c.repeat(MAX_PATH_CHARS / escaped.chars().count());
            let shown = PathText(Path::new(&whole)).to_string();
            assert_eq!(shown, whole.replace(c, escaped));
            let shown = PathText(Path::new(&format!("a/{}/b", c.repeat(100_000)))).to_string();
            assert!(shown.starts_with("a/") && shown.ends_with("/b") && shown.contains('…'));
            let chars = shown.chars().count();
            assert!((1000..=MAX_PATH_CHARS + 1).contains(&chars), "{chars}");
        }
    }

    #[test]
    fn errors_keep_the_beginning_of_long_texts() {
        assert_eq!(*shortened(&"é".repeat(256)), "é".repeat(256));
        assert_eq!(*shortened(&"é".repeat(257)), "é".repeat(256) + "…");
    }

    #[cfg(unix)]
    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        use std::os::unix::ffi::OsStrExt;
        // A surrogate encoded as in UTF-8, and a byte that starts no character.
        let name = std::ffi::OsStr::from_bytes(b"a\xed\xa0\x80\xff");
        let shown = PathText(Path::new(name)).to_string();
        assert!(shown.starts_with('a') && shown[1..].chars().all(|c| c == '\u{fffd}'), "{shown}");
    }

    #[test]
    fn cuts_after_120_characters_not_bytes() {
        let shown = Quoted(&"é".repeat(500)).to_string();
        assert_eq!(shown.chars().filter(|c| *c == 'é').count(), 120);
        assert!(shown.ends_with("\"…"));
    }
}
