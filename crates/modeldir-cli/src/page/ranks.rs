//! The page of a job: the tensors and reads of each rank.

use tensorfile::PathText;

use super::bar::{bar, coloured_bar, legend};
use super::document::{Figure, document, end_section, list, paragraph, section};
use super::html::Html;
use super::inspect::title;
use super::kinds::{ByColour, Kinds, SLOTS};
use super::table::plain_table;
use crate::output::{bytes, count};
use crate::ranks::{JobPlan, RankPlan, oddity_lines, rank_table};

/// Maximum number of ranks with bars; the table has more.
const MAX_BARS: usize = 512;

/// Returns a page with the tensors and reads of the ranks of a job.
pub(crate) fn job_page(job: &JobPlan<'_>) -> String {
    let mut html = Html::default();
    let oddities = oddity_lines(job);
    if !oddities.is_empty() {
        section("Report", &mut html);
        list(oddities.iter().map(String::as_str), &mut html);
        end_section(&mut html);
    }
    bars(job, &mut html);
    section("Ranks", &mut html);
    paragraph("Replicated are the bytes that other ranks hold too.", &mut html);
    plain_table(&rank_table(job), &mut html);
    end_section(&mut html);
    let model = job.model();
    let title = format!("{} on {} ranks", title(model), count(job.ranks().len() as u64));
    document(&title, &PathText(model.path()).to_string(), &figures(job), &html)
}

fn figures(job: &JobPlan<'_>) -> [Figure; 4] {
    let held = job.ranks().iter().map(|rank| rank.plan().bytes_selected());
    let (most, least) = (held.clone().max().unwrap_or(0), held.min().unwrap_or(0));
    let read: u64 = job.ranks().iter().map(|rank| rank.plan().bytes_read()).sum();
    [
        ("bytes of the model", bytes(job.model().byte_len())),
        ("most on a rank", bytes(most)),
        ("least on a rank", bytes(least)),
        ("read by all ranks", bytes(read)),
    ]
}

/// Two bars for each rank: its bytes by kind, and the bytes that it reads.
fn bars(job: &JobPlan<'_>, html: &mut Html) {
    let ranks = job.ranks();
    let tensors = job.model().tensors().map(|t| (t.name(), t.byte_len() as u64));
    let kinds = Kinds::of(tensors);
    let longest = |rank: &RankPlan| rank.plan().bytes_selected().max(rank.plan().bytes_read());
    let longest = ranks.iter().map(longest).max().unwrap_or(0);
    section("What each rank holds and reads", html);
    paragraph(
        "The thin bar is what a rank reads: where rows are cut, also what lies between.",
        html,
    );
    legend(&kinds, html);
    html.raw("<div class=\"wide\"><table class=\"ranks\"><tbody>\n");
    for (number, rank) in ranks.iter().enumerate().take(MAX_BARS) {
        let plan = rank.plan();
        html.raw("<tr><th class=\"number\">").int(number as u64).raw("</th><td>");
        html.text(&rank.place()).raw("</td><td class=\"bars\">");
        coloured_bar(&held(rank, &kinds), &kinds, longest, html);
        bar(plan.bytes_read() as f64 / longest.max(1) as f64, html);
        html.raw("</td><td class=\"number\">").text(&bytes(plan.bytes_selected()));
        html.raw(" held<br><small>").text(&bytes(plan.bytes_read()));
        html.raw(" read</small></td></tr>\n");
    }
    html.raw("</tbody></table></div>\n");
    if ranks.len() > MAX_BARS {
        paragraph("Further ranks are in the table.", html);
    }
    end_section(html);
}

/// Bytes that a rank holds, by the colours of kinds.
fn held(rank: &RankPlan, kinds: &Kinds<'_>) -> ByColour {
    let mut held = [0; SLOTS];
    for tensor in rank.plan().planned() {
        held[kinds.colour(tensor.name())] += tensor.byte_len() as u64;
    }
    held
}
