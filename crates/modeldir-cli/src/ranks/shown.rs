//! The plans of a job as a table, as JSON, and as lines about what is odd.

use serde_json::{Value, json};

use super::plans::{JobPlan, RankPlan};
use super::sizes::Sizes;
use super::without_rule::WithoutRule;
use crate::output::{Align, Table, bytes, count, counted, path_json, shown};

/// Maximum names in a line.
const MAX_NAMES: usize = 10;

impl JobPlan<'_> {
    /// Returns a row for each rank, and one with the sums.
    pub(crate) fn table(&self) -> Table<8> {
        let (left, right) = (Align::Left, Align::Right);
        let mut table = Table::new([
            ("rank", right),
            ("place", left),
            ("tensors", right),
            ("bytes", right),
            ("share", right),
            ("replicated", right),
            ("read", right),
            ("reads", right),
        ]);
        let mut row = |rank: String, place: String, sizes: Sizes| {
            let share = format!("{:.1} %", 100.0 * sizes.share(self.model()));
            let (selected, replicated) = (bytes(sizes.selected), bytes(sizes.replicated));
            let (read, reads) = (bytes(sizes.read), count(sizes.reads));
            let tensors = count(sizes.tensors);
            table.row([rank, place, tensors, selected, share, replicated, read, reads]);
        };
        for (number, rank) in self.ranks().iter().enumerate() {
            row(number.to_string(), rank.place(), Sizes::of(rank));
        }
        row("sum".to_owned(), String::new(), Sizes::total(self.ranks()));
        table
    }

    /// Returns the ranks, their sums and what is odd as one JSON object.
    pub(crate) fn json(&self) -> Value {
        let model = self.model();
        let rank = |(number, rank): (usize, &RankPlan)| {
            let mut value = Sizes::of(rank).json(model);
            value["rank"] = json!(number);
            value["memory"] = json!(rank.plan().memory_bytes());
            value["topology"] = json!(rank.topology);
            value["without_rule"] = json!(WithoutRule::of(rank.plan()).map(|found| found.json()));
            value
        };
        json!({
            "path": path_json(model.path()),
            "tensors": model.len(),
            "bytes": model.byte_len(),
            "ranks": self.ranks().iter().enumerate().map(rank).collect::<Vec<_>>(),
            "sum": Sizes::total(self.ranks()).json(model),
            "left_out": self.left_out,
            "unused_rules": self.unused_rules,
            "unmatched": self.unmatched,
        })
    }

    /// Returns lines with the tensors that no rank holds, the unused rules and the unmatched
    /// tensors; none if all is in order.
    pub(crate) fn oddity_lines(&self) -> Vec<String> {
        let of_ranks = self.ranks().iter().filter_map(|rank| WithoutRule::of(rank.plan()));
        let most = of_ranks.max_by(|one, other| one.share().total_cmp(&other.share()));
        let extent = most.map_or_else(String::new, |most| format!(", {}", most.extent()));
        let unmatched = format!(" without a rule, whole on every rank of a stage{extent}");
        let kinds = [
            ("tensor", " on no rank", &self.left_out),
            ("unused rule", "", &self.unused_rules),
            ("tensor", &unmatched, &self.unmatched),
        ];
        let odd = kinds.into_iter().filter(|(.., names)| !names.is_empty());
        odd.map(|(noun, what, names)| line(noun, what, names)).collect()
    }
}

/// Returns a number of things, what is odd about them, and the first of their names.
fn line(noun: &str, what: &str, names: &[String]) -> String {
    let listed: Vec<_> = names.iter().take(MAX_NAMES).map(|name| shown(name)).collect();
    let more = if names.len() > MAX_NAMES { ", …" } else { "" };
    format!("{}{what}: {}{more}", counted(names.len(), noun), listed.join(", "))
}
