//! The frame of a page: title, style, figures, sections.

use std::path::Path;

use modeldir::ModelDir;
use tensorfile::PathText;

use super::html::Html;

const STYLE: &str = include_str!("style.css");

/// A figure at the top of a page, with its label.
pub(super) type Figure = (&'static str, String);

/// Returns a page with a title, the path of the model, figures, and sections.
///
/// Its policy forbids scripts and requests.
pub(super) fn document(
    title: &str,
    model: &ModelDir,
    figures: &[Figure],
    sections: &Html,
) -> String {
    let path = PathText(model.path()).to_string();
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.raw("<meta http-equiv=\"Content-Security-Policy\" ");
    html.raw("content=\"default-src 'none'; style-src 'unsafe-inline'\">\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\">\n<title>").text(title);
    html.raw("</title>\n<style>\n").raw(STYLE).raw("</style>\n</head>\n<body>\n<header><h1>");
    html.text(title).raw("</h1><p><code>").text(&path).raw("</code></p></header>\n");
    html.raw("<dl class=\"figures\">");
    for (what, figure) in figures {
        html.raw("<div><dt>").raw(what).raw("</dt><dd>").text(figure).raw("</dd></div>");
    }
    html.raw("</dl>\n<main>\n").append(sections).raw("</main>\n<footer>modeldir ");
    html.raw(env!("CARGO_PKG_VERSION")).raw("</footer>\n</body>\n</html>\n");
    html.into_text()
}

/// The name of a model: that of its directory.
pub(super) fn model_name(model: &ModelDir) -> String {
    let path = std::path::absolute(model.path()).unwrap_or_else(|_| model.path().to_owned());
    let name = path.file_name().map(Path::new);
    name.map_or_else(|| "model".to_owned(), |name| PathText(name).to_string())
}

/// Writes a section with a heading.
pub(super) fn section(heading: &'static str, html: &mut Html, content: impl FnOnce(&mut Html)) {
    html.raw("<section><h2>").raw(heading).raw("</h2>\n");
    content(html);
    html.raw("</section>\n");
}

/// Writes a paragraph.
pub(super) fn paragraph(text: &'static str, html: &mut Html) {
    html.raw("<p>").raw(text).raw("</p>\n");
}

/// Writes lines as a list.
pub(super) fn list<'l>(lines: impl Iterator<Item = &'l str>, html: &mut Html) {
    html.raw("<ul class=\"notes\">\n");
    for line in lines {
        html.raw("<li>").text(line).raw("</li>\n");
    }
    html.raw("</ul>\n");
}
