//! Colours, on terminals only.

use std::fmt::Display;
use std::io::IsTerminal;

/// Whether a stream is a terminal whose user has not chosen plain text.
pub(crate) fn is_styled(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Wraps a text in the terminal's code for a style.
pub(crate) fn styled(is_styled: bool, code: &str, text: impl Display) -> String {
    if is_styled { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
}
