//! Text of a page. Text from files is always escaped.

use std::fmt::Write;

/// A buffer of HTML.
///
/// Markup is part of the program (`&'static str`), so that no name of a tensor can become markup.
#[derive(Clone, Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Adds markup.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds text, for an element or for an attribute in double quotes.
    ///
    /// Invisible characters, those that change the direction of text, and those that HTML forbids
    /// are written as escapes.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                _ => push_visible(c, &mut self.0),
            }
        }
        self
    }

    /// Adds a whole number.
    pub(super) fn int(&mut self, number: u64) -> &mut Self {
        // Writing to a `String` does not fail.
        let _written = write!(self.0, "{number}");
        self
    }

    /// Adds a number with one decimal.
    pub(super) fn fixed(&mut self, number: f64) -> &mut Self {
        let _written = write!(self.0, "{number:.1}");
        self
    }

    /// Appends another buffer.
    pub(super) fn append(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// Returns the HTML.
    pub(super) fn into_text(self) -> String {
        self.0
    }
}

/// Returns a text as it is displayed.
pub(super) fn visible(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    text.chars().for_each(|c| push_visible(c, &mut seen));
    seen
}

/// Adds a character, or an escape if it is invisible or changes the direction of text.
fn push_visible(c: char, text: &mut String) {
    match c {
        '"' | '\'' | '\\' | '\n' => text.push(c),
        _ => text.extend(c.escape_debug()),
    }
}

/// Returns a text, shortened to its start and end if it has too many characters.
pub(super) fn clipped(text: &str, max_chars: usize) -> String {
    let len = text.chars().count();
    if len <= max_chars {
        return text.to_owned();
    }
    let kept = max_chars.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    text.chars().take(head).chain(['…']).chain(text.chars().skip(len - tail)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Html, clipped, visible};

    #[test]
    fn text_cannot_leave_its_place() {
        let mut html = Html::default();
        html.raw("<p title=\"").text("\"><script>'&\u{202e}\u{0}é").raw("\">");
        let expected = r#"<p title="&quot;&gt;&lt;script&gt;&#39;&amp;\u{202e}\0é">"#;
        assert_eq!(html.into_text(), expected);
    }

    #[test]
    fn what_is_not_seen_is_escaped() {
        assert_eq!(visible("é\"'\\\n\u{202e}\u{1b}"), "é\"'\\\n\\u{202e}\\u{1b}");
    }

    #[test]
    fn long_texts_keep_both_ends() {
        assert_eq!(clipped("model.layers", 12), "model.layers");
        assert_eq!(clipped("model.layers.0", 8), "mode…s.0");
        assert_eq!((clipped("abc", 1), clipped("abc", 0)), ("…".into(), "…".into()));
    }
}
