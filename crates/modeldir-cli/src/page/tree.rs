//! Modules and tensors as a list that opens level by level, with a drawing of each large module.

use super::bar::{bar, percent};
use super::html::{Html, clipped};
use super::modules::Modules;
use super::treemap::Treemap;
use crate::output::bytes;

/// Maximum number of lines.
const MAX_LINES: usize = 4000;
/// Approximate maximum number of rectangles in all drawings of modules.
const MAX_RECTS: usize = 6000;
/// Levels that are open at first.
const OPEN_LEVELS: usize = 2;
/// Maximum children of a module that is open at first.
const MAX_OPEN: usize = 12;
/// Maximum characters of a name.
const MAX_NAME: usize = 120;

/// The list of a model's modules.
#[derive(Debug)]
pub(super) struct Tree<'a, 'm> {
    modules: &'a Modules<'m>,
    opened: Vec<bool>,
    /// Which modules have a line, by number.
    pub(super) listed: Vec<bool>,
}

impl<'a, 'm> Tree<'a, 'm> {
    pub(super) fn new(modules: &'a Modules<'m>) -> Self {
        let opened = modules.opened(MAX_LINES);
        let mut listed = vec![false; opened.len()];
        for number in (0..opened.len()).filter(|number| opened[*number]) {
            modules.get(number).children.iter().for_each(|child| listed[*child] = true);
        }
        Self { modules, opened, listed }
    }

    /// Writes the list.
    pub(super) fn write(&self, html: &mut Html) {
        html.raw("<ul class=\"tree\">\n");
        self.children(Modules::ROOT, 0, &mut 0, html);
        html.raw("</ul>\n");
    }

    /// Writes a line for each child of a module, and below it those of its own children.
    fn children(&self, module: usize, level: usize, rects: &mut usize, html: &mut Html) {
        for child in &self.modules.get(module).children {
            html.raw("<li id=\"m").int(*child as u64).raw("\">");
            if !self.opened[*child] {
                html.raw("<div class=\"line\">");
                self.line(*child, html);
                html.raw("</div></li>\n");
                continue;
            }
            let is_open =
                level < OPEN_LEVELS && self.modules.get(*child).children.len() <= MAX_OPEN;
            html.raw(if is_open { "<details open>" } else { "<details>" });
            html.raw("<summary class=\"line\">");
            self.line(*child, html);
            html.raw("</summary>");
            self.map(*child, rects, html);
            html.raw("<ul>\n");
            self.children(*child, level + 1, rects, html);
            html.raw("</ul></details></li>\n");
        }
    }

    /// Draws a module of modules, unless it is nearly the whole model, which is already drawn.
    fn map(&self, module: usize, rects: &mut usize, html: &mut Html) {
        let bytes = |number| self.modules.get(number).bytes as f64;
        let is_nearly_all = bytes(module) > 0.8 * bytes(Modules::ROOT);
        let children = self.modules.largest(module);
        let is_deep = children.iter().any(|child| !self.modules.get(*child).children.is_empty());
        if *rects < MAX_RECTS && !is_nearly_all && is_deep && children.len() > 1 {
            let map = Treemap { modules: self.modules, listed: &self.listed };
            *rects += map.draw(module, 220.0, html);
        }
    }

    /// Writes the name, contents, bytes and share of a module.
    fn line(&self, number: usize, html: &mut Html) {
        let module = self.modules.get(number);
        html.raw("<code title=\"").text(&clipped(module.path, 2 * MAX_NAME)).raw("\">");
        html.text(&clipped(module.name(), MAX_NAME)).raw("</code><span class=\"what\">");
        html.text(&module.contents()).raw("</span>");
        let total = self.modules.get(Modules::ROOT).bytes;
        bar(module.bytes, total, html);
        html.raw("<span class=\"number\">").text(&bytes(module.bytes));
        html.raw("</span><span class=\"number\">").fixed(percent(module.bytes, total));
        html.raw(" %</span>");
    }
}
