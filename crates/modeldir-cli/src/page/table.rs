//! Tables of a page.

use super::bar::{bar, percent};
use super::html::Html;
use crate::contents::{Counted, Tally};
use crate::output::{Align, Table, bytes, count};

/// Maximum rows of a table; the last one sums up the rest.
const MAX_ROWS: usize = 1000;

/// Maximum rows of a table that is open at first; a longer one opens on a click.
const MAX_OPEN_ROWS: usize = 32;

/// Writes a table of tensors and bytes, with bars.
pub(super) fn tally_table(tally: &Tally, html: &mut Html) {
    let rows = tally.rows(MAX_ROWS);
    let total: u64 = rows.iter().map(|row| row.bytes).sum();
    let largest = rows.iter().map(|row| row.bytes).max().unwrap_or(0);
    let is_long = rows.len() > MAX_OPEN_ROWS;
    if is_long {
        html.raw("<details><summary>").text(&count(rows.len() as u64)).raw(" rows</summary>");
    }
    html.raw("<div class=\"wide\"><table><thead><tr><th>").raw(tally.heading());
    html.raw("</th><th class=\"number\">tensors</th><th class=\"number\">bytes</th>");
    html.raw("<th class=\"number\">share</th><th></th></tr></thead>\n<tbody>");
    for row in &rows {
        tally_row(row, total, largest, html);
    }
    html.raw("</tbody></table></div>").raw(if is_long { "</details>\n" } else { "\n" });
}

/// The longest bar is that of the largest row, since shares of many are small.
fn tally_row(row: &Counted, total: u64, largest: u64, html: &mut Html) {
    html.raw("<tr><td><code>").text(&row.name).raw("</code></td><td class=\"number\">");
    html.text(&count(row.tensors)).raw("</td><td class=\"number\">").text(&bytes(row.bytes));
    html.raw("</td><td class=\"number\">").fixed(percent(row.bytes, total));
    html.raw(" %</td><td class=\"bars\">");
    bar(row.bytes, largest, html);
    html.raw("</td></tr>\n");
}

/// Writes a table for the terminal as HTML.
pub(super) fn plain_table<const N: usize>(table: &Table<N>, html: &mut Html) {
    let class = |align| if align == Align::Right { " class=\"number\"" } else { "" };
    html.raw("<div class=\"wide\"><table>");
    if table.headings().iter().all(|heading| !heading.is_empty()) {
        html.raw("<thead><tr>");
        for (heading, align) in table.headings().iter().zip(table.aligns()) {
            html.raw("<th").raw(class(*align)).raw(">").raw(heading).raw("</th>");
        }
        html.raw("</tr></thead>");
    }
    html.raw("\n<tbody>");
    for row in table.rows().iter().take(MAX_ROWS) {
        html.raw("<tr>");
        for (cell, align) in row.iter().zip(table.aligns()) {
            html.raw("<td").raw(class(*align)).raw(">").text(cell).raw("</td>");
        }
        html.raw("</tr>\n");
    }
    html.raw("</tbody></table></div>\n");
    let rest = table.rows().len().saturating_sub(MAX_ROWS);
    if rest > 0 {
        html.raw("<p>and ").text(&count(rest as u64)).raw(" more rows</p>\n");
    }
}
