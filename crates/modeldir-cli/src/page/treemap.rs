//! A drawing of modules as rectangles: the area shows the bytes, the colour the kind.

use super::bar::percent;
use super::html::{Html, clipped, visible};
use super::modules::Modules;
use super::squarify::{Rect, squarify};
use crate::output::bytes;

/// Width of a drawing, which is scaled to the width of the page.
const WIDTH: f64 = 1200.0;
/// Height of the strip with the name of a module.
const STRIP: f64 = 18.0;
/// Width of a character of a label, in a monospaced font.
const CHAR: f64 = 7.3;
/// Maximum children of a module that are drawn; the others are one rectangle.
const MAX_CHILDREN: usize = 300;
/// Minimum average area of children; with less, a module is drawn without them. This also bounds
/// the number of rectangles.
const CHILD_AREA: f64 = 400.0;
/// Characters of a name in a tooltip.
const MAX_NAME: usize = 240;

/// The contents of a drawing.
#[derive(Debug)]
pub(super) struct Treemap<'a, 'm> {
    pub(super) modules: &'a Modules<'m>,
    /// Which modules have a line of their own on the page, by number.
    pub(super) listed: &'a [bool],
}

/// An unfinished drawing.
struct Drawing<'a> {
    html: &'a mut Html,
    rects: usize,
    total: u64,
}

impl Treemap<'_, '_> {
    /// Draws the contents of a module, and returns the number of rectangles.
    pub(super) fn draw(&self, module: usize, height: f64, html: &mut Html) -> usize {
        let name = self.modules.get(module).path;
        html.raw("<svg class=\"map\" viewBox=\"0 0 1200 ").fixed(height);
        html.raw("\" role=\"img\" aria-label=\"Bytes by module ").text(&clipped(name, MAX_NAME));
        html.raw("\">");
        let total = self.modules.get(module).bytes;
        let area = Rect { x: 0.0, y: 0.0, width: WIDTH, height };
        let mut drawing = Drawing { html, rects: 0, total };
        self.children(module, area, &mut drawing);
        drawing.html.raw("</svg>\n");
        drawing.rects
    }

    /// Draws the children of a module in an area.
    fn children(&self, module: usize, area: Rect, drawing: &mut Drawing<'_>) {
        let children = self.modules.largest(module);
        let (drawn, rest) = children.split_at(children.len().min(MAX_CHILDREN));
        let byte_len = |child: &usize| self.modules.get(*child).bytes;
        let mut sizes: Vec<f64> = drawn.iter().map(|child| byte_len(child) as f64).collect();
        let rest_bytes: u64 = rest.iter().map(byte_len).sum();
        // The rest may be larger than earlier ones; that affects the shapes, not the areas.
        sizes.extend((rest_bytes > 0).then_some(rest_bytes as f64));
        let rects = squarify(&sizes, area);
        drawing.rects += rects.len();
        for (child, rect) in drawn.iter().zip(&rects) {
            self.module(*child, *rect, drawing);
        }
        if let Some(rect) = rects.get(drawn.len()) {
            let label = format!("{} more", rest.len());
            rectangle(*rect, None, drawing.html, &|html| _ = html.text(&label));
            labels(*rect, &label, &bytes(rest_bytes), drawing.html);
            drawing.html.raw("</g>");
        }
    }

    fn module(&self, number: usize, rect: Rect, drawing: &mut Drawing<'_>) {
        let module = self.modules.get(number);
        let inner = rect.inside(3.0, STRIP);
        let (children, area) = (module.children.len(), inner.width * inner.height);
        let is_frame = children > 1 && inner.width > 50.0 && area > CHILD_AREA * children as f64;
        let is_linked = self.listed.get(number).is_some_and(|listed| *listed);
        if is_linked {
            drawing.html.raw("<a href=\"#m").int(number as u64).raw("\">");
        }
        let colour = if is_frame { None } else { Some(module.colour()) };
        let total = drawing.total;
        rectangle(rect, colour, drawing.html, &|html| self.title(number, total, html));
        if is_frame {
            let width = rect.width - 12.0 - 9.0 * CHAR;
            let name = fitting(module.name(), if width > 60.0 { width } else { rect.width - 8.0 });
            label(rect.x + 5.0, rect.y + 13.0, "<text class=\"name\"", &name, drawing.html);
            if width > 60.0 {
                let (x, size) = (rect.x + rect.width - 5.0, bytes(module.bytes));
                label(x, rect.y + 13.0, "<text class=\"end\"", &size, drawing.html);
            }
        } else {
            labels(rect, module.name(), &bytes(module.bytes), drawing.html);
        }
        drawing.html.raw("</g>").raw(if is_linked { "</a>" } else { "" });
        if is_frame {
            self.children(number, inner, drawing);
        }
    }

    /// Writes the tooltip of a module.
    fn title(&self, number: usize, total: u64, html: &mut Html) {
        let module = self.modules.get(number);
        html.text(&clipped(module.path, MAX_NAME)).raw("\n").text(&bytes(module.bytes)).raw(", ");
        html.fixed(percent(module.bytes, total)).raw(" %, ").text(&module.contents());
    }
}

/// Starts a group of a rectangle and its tooltip; a frame has no colour.
fn rectangle(rect: Rect, colour: Option<usize>, html: &mut Html, title: &dyn Fn(&mut Html)) {
    html.raw("<g><rect x=\"").fixed(rect.x).raw("\" y=\"").fixed(rect.y);
    html.raw("\" width=\"").fixed(rect.width).raw("\" height=\"").fixed(rect.height);
    match colour {
        Some(colour) => html.raw("\" class=\"k").int(colour as u64).raw("\""),
        None => html.raw("\" class=\"frame\""),
    };
    html.raw("><title>");
    title(html);
    html.raw("</title></rect>");
}

/// Writes as much of a name and a size as fits in a rectangle.
fn labels(rect: Rect, name: &str, size: &str, html: &mut Html) {
    let room = rect.width - 8.0;
    if rect.height > 16.0 && room > 3.0 * CHAR {
        label(rect.x + 4.0, rect.y + 13.0, "<text", &fitting(name, room), html);
    }
    if rect.height > 32.0 && room > size.chars().count() as f64 * CHAR {
        label(rect.x + 4.0, rect.y + 28.0, "<text class=\"size\"", size, html);
    }
}

fn label(x: f64, y: f64, tag: &'static str, text: &str, html: &mut Html) {
    html.raw(tag)
        .raw(" x=\"")
        .fixed(x)
        .raw("\" y=\"")
        .fixed(y)
        .raw("\">")
        .text(text)
        .raw("</text>");
}

/// The name, shortened to a width, without its last part if that is enough. Characters outside the
/// Latin script may be twice as wide.
fn fitting(name: &str, width: f64) -> String {
    let room = (width / CHAR).max(0.0);
    let wide = name.chars().any(|c| c > '\u{2ff}');
    // A width is positive and far below the limit of the type.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as said above")]
    let max = (if wide { room / 2.0 } else { room }) as usize;
    let (name, max) = (visible(name), max.max(1));
    if name.chars().count() <= max {
        return name;
    }
    let name = name.rsplit_once('.').map_or(&*name, |(module, _)| module);
    let name: String = name.chars().take(max + 1).collect();
    if name.chars().count() <= max {
        name
    } else {
        name.chars().take(max - 1).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{CHAR, fitting};

    #[test]
    fn labels_fit() {
        assert_eq!(fitting("self_attn", 9.5 * CHAR), "self_attn");
        assert_eq!(fitting("self_attn", 5.0 * CHAR), "self…");
        assert_eq!(fitting("up_proj.weight", 7.0 * CHAR), "up_proj");
        assert_eq!(fitting("up_proj.weight", 6.0 * CHAR), "up_pr…");
        assert_eq!(fitting("模型模型模型", 6.0 * CHAR), "模型…");
        assert_eq!((fitting("x", 0.0), fitting("xy", 0.0)), ("x".into(), "…".into()));
    }
}
