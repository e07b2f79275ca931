//! Bars, and the colours that explain them.

use super::html::Html;
use super::kinds::{ByColour, Kinds};
use crate::output::bytes;

/// Writes a bar of one colour; a full one has as many bytes as the whole.
pub(super) fn bar(part: u64, whole: u64, html: &mut Html) {
    html.raw("<span class=\"bar\"><i style=\"width:").fixed(percent(part, whole));
    html.raw("%\"></i></span>");
}

/// Writes a bar in the colours of kinds; a full one has as many bytes as the whole.
pub(super) fn coloured_bar(parts: &ByColour, kinds: &Kinds<'_>, whole: u64, html: &mut Html) {
    html.raw("<span class=\"bar\">");
    for (colour, part) in parts.iter().enumerate().filter(|(_, part)| **part > 0) {
        html.raw("<i class=\"k").int(colour as u64).raw("\" style=\"width:");
        html.fixed(percent(*part, whole)).raw("%\" title=\"");
        html.text(&kinds.name(colour)).raw(": ").text(&bytes(*part)).raw("\"></i>");
    }
    html.raw("</span>");
}

/// Writes the name and the bytes of each kind beside its colour.
pub(super) fn legend(kinds: &Kinds<'_>, html: &mut Html) {
    html.raw("<ul class=\"legend\">");
    for (colour, total) in kinds.totals().iter().enumerate().filter(|(_, total)| **total > 0) {
        html.raw("<li><i class=\"swatch k").int(colour as u64).raw("\"></i>");
        html.text(&kinds.name(colour)).raw(" <small>").text(&bytes(*total)).raw("</small></li>");
    }
    html.raw("</ul>\n");
}

/// Returns a part of a whole in percent; zero if the whole is empty.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    (100.0 * part as f64 / whole.max(1) as f64).clamp(0.0, 100.0)
}
