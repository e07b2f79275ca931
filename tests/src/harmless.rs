//! Whether text can be shown on a terminal: no control character but the end of a line, nothing that
//! changes how its neighbours are shown, no line without end.

/// The longest line, in bytes, of anything that the product says: twenty paths are listed at most.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Says what is wrong with a text that is shown to people; `None` if nothing is.
#[must_use]
pub fn harm_in(text: &str) -> Option<String> {
    if let Some(c) = text.chars().find(|c| *c != '\n' && is_harmful(*c)) {
        return Some(format!("holds U+{:04X}", u32::from(c)));
    }
    let long = text.lines().map(str::len).find(|len| *len > MAX_LINE_BYTES);
    long.map(|len| format!("has a line of {len} bytes"))
}

/// Whether a character acts on a terminal or on its neighbours.
#[must_use]
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// A text of every kind of harm: colours, a forged line, direction marks, zero width, line separators.
pub const HARM: &str = "x\u{1b}[31m\nforged\r\u{7}\u{7f}\u{85}\u{9b}\u{ad}\u{61c}\u{200b}\u{200d}\
    \u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}\u{fffb}\u{e0001}y";

#[cfg(test)]
mod tests {
    use super::{HARM, harm_in};

    #[test]
    fn harm_is_found() {
        assert!(harm_in(HARM).is_some() && harm_in("é\n模").is_none());
        for c in HARM.chars().filter(|c| !c.is_ascii_graphic() && *c != '\n') {
            assert!(harm_in(&format!("a{c}")).is_some(), "{c:?}");
        }
        assert!(harm_in(&"x".repeat(100_000)).is_some());
    }
}
