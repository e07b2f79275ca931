//! The plans of the ranks of a job, as a table and as JSON.

use modeldir::{LoadPlan, ModelDir, Partition, Topology};
use serde_json::{Value, json};

use super::Holdings;
use crate::failure::Result;
use crate::output::{Align, Table, bytes, count, counted, path_json, shown};

/// Maximum names shown of a kind.
const MAX_NAMES: usize = 10;

/// The plans of all ranks of a job, from headers alone.
#[derive(Clone, Debug)]
pub(crate) struct JobPlan<'m> {
    model: &'m ModelDir,
    ranks: Vec<RankPlan>,
    left_out: Vec<String>,
}

/// A rank, its plan, and how many of its bytes other ranks hold too.
#[derive(Clone, Debug)]
pub(crate) struct RankPlan {
    topology: Topology,
    plan: LoadPlan,
    bytes_replicated: u64,
}

impl<'m> JobPlan<'m> {
    /// Plans every rank, from headers alone.
    ///
    /// # Errors
    ///
    /// Those of cutting the model.
    pub(crate) fn new(
        model: &'m ModelDir,
        partition: &Partition,
        topologies: Vec<Topology>,
    ) -> Result<Self> {
        let Holdings { replicated, left_out } = Holdings::new(model, partition, &topologies)?;
        let mut ranks = Vec::with_capacity(topologies.len());
        for (topology, bytes_replicated) in topologies.into_iter().zip(replicated) {
            let plan = model.plan_for(partition, &topology)?;
            ranks.push(RankPlan { topology, plan, bytes_replicated });
        }
        Ok(Self { model, ranks, left_out })
    }

    /// The model that is cut.
    pub(crate) fn model(&self) -> &'m ModelDir {
        self.model
    }

    /// The ranks, in order.
    pub(crate) fn ranks(&self) -> &[RankPlan] {
        &self.ranks
    }
}

impl RankPlan {
    /// What the rank would read.
    pub(crate) fn plan(&self) -> &LoadPlan {
        &self.plan
    }

    /// Which rank it is, as `tp 1/4, pp 0/2`.
    pub(crate) fn place(&self) -> String {
        place(&self.topology)
    }
}

/// Sums of sizes.
#[derive(Clone, Copy, Default)]
struct Sizes {
    tensors: u64,
    selected: u64,
    replicated: u64,
    read: u64,
    reads: u64,
}

impl Sizes {
    fn of(rank: &RankPlan) -> Self {
        let RankPlan { plan, bytes_replicated, .. } = rank;
        Self {
            tensors: plan.len() as u64,
            selected: plan.bytes_selected(),
            replicated: *bytes_replicated,
            read: plan.bytes_read(),
            reads: plan.requests().len() as u64,
        }
    }

    fn total(ranks: &[RankPlan]) -> Self {
        ranks.iter().map(Self::of).fold(Self::default(), |sum, rank| Self {
            tensors: sum.tensors + rank.tensors,
            selected: sum.selected + rank.selected,
            replicated: sum.replicated + rank.replicated,
            read: sum.read + rank.read,
            reads: sum.reads + rank.reads,
        })
    }

    /// The selected share of all bytes of the model; zero for an empty model.
    fn share(&self, model: &ModelDir) -> f64 {
        self.selected as f64 / model.byte_len().max(1) as f64
    }

    fn json(&self, model: &ModelDir) -> Value {
        json!({
            "tensors": self.tensors,
            "bytes_selected": self.selected,
            "share": self.share(model),
            "bytes_replicated": self.replicated,
            "bytes_read": self.read,
            "reads": self.reads,
        })
    }
}

/// Returns a row for each rank, and the sums.
pub(crate) fn rank_table(job: &JobPlan<'_>) -> Table<8> {
    let JobPlan { model, ranks, .. } = job;
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
        let share = format!("{:.1} %", 100.0 * sizes.share(model));
        let (selected, replicated) = (bytes(sizes.selected), bytes(sizes.replicated));
        let (tensors, read, reads) = (count(sizes.tensors), bytes(sizes.read), count(sizes.reads));
        table.row([rank, place, tensors, selected, share, replicated, read, reads]);
    };
    for (number, rank) in ranks.iter().enumerate() {
        row(number.to_string(), place(&rank.topology), Sizes::of(rank));
    }
    row("sum".to_owned(), String::new(), Sizes::total(ranks));
    table
}

/// Returns the ranks, their sums and any oddities as one JSON object.
pub(crate) fn ranks_json(job: &JobPlan<'_>) -> Value {
    let JobPlan { model, ranks, left_out } = job;
    let rank = |(number, rank): (usize, &RankPlan)| {
        let mut value = Sizes::of(rank).json(model);
        let topology = &rank.topology;
        value["rank"] = json!(number);
        value["memory"] = json!(rank.plan.memory_bytes());
        value["topology"] = json!(topology);
        value
    };
    let (unused, unmatched) = oddities(ranks);
    json!({
        "path": path_json(model.path()),
        "tensors": model.len(),
        "bytes": model.byte_len(),
        "ranks": ranks.iter().enumerate().map(rank).collect::<Vec<_>>(),
        "sum": Sizes::total(ranks).json(model),
        "left_out": left_out,
        "unused_rules": unused,
        "unmatched": unmatched,
    })
}

/// Returns lines with the tensors that no rank holds, the unused rules and the unmatched tensors;
/// none if all is in order.
pub(crate) fn oddity_lines(job: &JobPlan<'_>) -> Vec<String> {
    let (unused, unmatched) = oddities(&job.ranks);
    let line = |(noun, what, names): (&str, &str, &[String])| {
        let listed: Vec<_> = names.iter().take(MAX_NAMES).map(|name| shown(name)).collect();
        let more = if names.len() > MAX_NAMES { ", …" } else { "" };
        format!("{} {what}: {}{more}", counted(names.len(), noun), listed.join(", "))
    };
    let kinds = [
        ("tensor", "on no rank", &job.left_out[..]),
        ("rule", "of no use", &unused),
        ("tensor", "without a rule, whole on every rank of a stage", &unmatched),
    ];
    kinds.into_iter().filter(|(.., names)| !names.is_empty()).map(line).collect()
}

/// The rules that no rank uses, and the tensors that no rule matches.
fn oddities(ranks: &[RankPlan]) -> (Vec<String>, Vec<String>) {
    let mut reports = ranks.iter().filter_map(|rank| rank.plan.partition_report());
    let Some(first) = reports.next() else { return Default::default() };
    let (mut unused, unmatched) = (first.unused.clone(), first.unmatched.clone());
    for report in reports {
        unused.retain(|rule| report.unused.contains(rule));
    }
    (unused, unmatched)
}

/// Returns the place of a rank as `tp 1/4, pp 0/2`, without kinds of a single rank.
fn place(topology: &Topology) -> String {
    let axes = [("tp", topology.tp()), ("pp", topology.pp()), ("ep", topology.ep())];
    let named = axes.iter().filter(|(_, at)| at.size() > 1);
    let named: Vec<_> = named.map(|(axis, at)| format!("{axis} {at}")).collect();
    if named.is_empty() { "all".to_owned() } else { named.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::place;
    use modeldir::Topology;
    use modeldir::partition::Job;

    #[test]
    fn a_place_names_what_is_shared_out() {
        let ranks: Vec<_> = Job { tp: 4, pp: 2, ..Job::default() }.ranks().unwrap().collect();
        assert_eq!(place(&ranks[5]), "tp 1/4, pp 1/2");
        assert_eq!(place(&Topology::single()), "all");
    }
}
