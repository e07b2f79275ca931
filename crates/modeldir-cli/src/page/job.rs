//! The page of a job: the tensors and reads of each rank.

use super::bar::{bar, coloured_bar, legend};
use super::document::{Figure, document, list, model_name, paragraph, section};
use super::html::Html;
use super::kinds::{ByColour, Kinds, SLOTS};
use super::table::plain_table;
use crate::output::{bytes, count};
use crate::ranks::{JobPlan, RankPlan};

/// Maximum number of ranks with bars; the table has all.
const MAX_BARS: usize = 512;

/// Returns a page with the tensors and reads of the ranks of a job.
pub(crate) fn job_page(job: &JobPlan<'_>) -> String {
    let mut html = Html::default();
    let oddities = job.oddity_lines();
    if !oddities.is_empty() {
        section("Report", &mut html, |html| list(oddities.iter().map(String::as_str), html));
    }
    section("What each rank holds and reads", &mut html, |html| bars(job, html));
    section("Ranks", &mut html, |html| {
        paragraph("Replicated are the bytes that other ranks hold too.", html);
        plain_table(&job.table(), html);
    });
    let title = format!("{} on {} ranks", model_name(job.model()), count(job.ranks().len() as u64));
    document(&title, job.model(), &figures(job), &html)
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
    let kinds = Kinds::of(job.model());
    let longest = |rank: &RankPlan| rank.plan().bytes_selected().max(rank.plan().bytes_read());
    let longest = ranks.iter().map(longest).max().unwrap_or(0);
    paragraph(
        "The thin bar is what a rank reads: where rows are cut, also the bytes between them.",
        html,
    );
    legend(&kinds, html);
    html.raw("<div class=\"wide\"><table class=\"ranks\"><tbody>\n");
    for (number, rank) in ranks.iter().enumerate().take(MAX_BARS) {
        let plan = rank.plan();
        html.raw("<tr><th class=\"number\">").int(number as u64).raw("</th><td>");
        html.text(&rank.place()).raw("</td><td class=\"bars\">");
        coloured_bar(&held(rank, &kinds), &kinds, longest, html);
        bar(plan.bytes_read(), longest, html);
        html.raw("</td><td class=\"number\">").text(&bytes(plan.bytes_selected()));
        html.raw(" held<br><small>").text(&bytes(plan.bytes_read()));
        html.raw(" read</small></td></tr>\n");
    }
    html.raw("</tbody></table></div>\n");
    if ranks.len() > MAX_BARS {
        paragraph("Further ranks are in the table.", html);
    }
}

/// Bytes that a rank holds, by the colours of kinds.
fn held(rank: &RankPlan, kinds: &Kinds<'_>) -> ByColour {
    let mut held = [0; SLOTS];
    for tensor in rank.plan().planned() {
        held[kinds.colour(tensor.name())] += tensor.byte_len() as u64;
    }
    held
}
