//! Text of a page. What comes from files goes in escaped, and by no other way.

use std::fmt::Write;

/// HTML that is being written.
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
    /// What changes the direction of text, is not seen, or is no character of a page is written as
    /// an escape.
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
        // Writing into a text does not fail.
        let _written = write!(self.0, "{number}");
        self
    }

    /// Adds a number with one decimal.
    pub(super) fn fixed(&mut self, number: f64) -> &mut Self {
        let _written = write!(self.0, "{number:.1}");
        self
    }

    /// Adds what has been written elsewhere.
    pub(super) fn append(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// Returns what has been written.
    pub(super) fn into_text(self) -> String {
        self.0
    }
}

/// Returns a text as it will be seen.
pub(super) fn visible(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    text.chars().for_each(|c| push_visible(c, &mut seen));
    seen
}

/// Adds a character, or an escape for what is not seen or turns the text around.
fn push_visible(c: char, text: &mut String) {
    match c {
        '"' | '\'' | '\\' | '\n' => text.push(c),
        _ => text.extend(c.escape_debug()),
    }
}

/// Returns a text of at most so many characters; of a longer one the beginning and the end.
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
