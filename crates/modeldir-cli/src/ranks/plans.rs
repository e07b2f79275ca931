//! The plans of the ranks of a job, and what is odd about them together.

use modeldir::{LoadPlan, ModelDir, Partition, Topology};

use super::holdings::Holdings;

/// The plans of all ranks of a job, from headers alone.
#[derive(Clone, Debug)]
pub(crate) struct JobPlan<'m> {
    model: &'m ModelDir,
    ranks: Vec<RankPlan>,
    /// The tensors of which no rank holds anything, by name.
    pub(super) left_out: Vec<String>,
    /// The rules that no rank uses.
    pub(super) unused_rules: Vec<String>,
    /// The tensors that no rule matches, by name.
    pub(super) unmatched: Vec<String>,
}

/// A rank, its plan, and how many of its bytes other ranks hold too.
#[derive(Clone, Debug)]
pub(crate) struct RankPlan {
    /// The rank.
    pub(super) topology: Topology,
    plan: LoadPlan,
    /// How many of its bytes other ranks hold too.
    pub(super) bytes_replicated: u64,
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
    ) -> modeldir::Result<Self> {
        let Holdings { replicated, left_out } = Holdings::new(model, partition, &topologies)?;
        let mut ranks = Vec::with_capacity(topologies.len());
        for (topology, bytes_replicated) in topologies.into_iter().zip(replicated) {
            let plan = model.plan_for(partition, &topology)?;
            ranks.push(RankPlan { topology, plan, bytes_replicated });
        }
        let (unused_rules, unmatched) = without_use(&ranks);
        Ok(Self { model, ranks, left_out, unused_rules, unmatched })
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

/// The rules that no rank uses, and the tensors that no rule matches, which are the same for all
/// ranks.
fn without_use(ranks: &[RankPlan]) -> (Vec<String>, Vec<String>) {
    let mut reports = ranks.iter().filter_map(|rank| rank.plan.partition_report());
    let Some(first) = reports.next() else { return Default::default() };
    let (mut unused, unmatched) = (first.unused.clone(), first.unmatched.clone());
    for report in reports {
        unused.retain(|rule| report.unused.contains(rule));
    }
    (unused, unmatched)
}

/// The place of a rank as `tp 1/4, pp 0/2`, without axes of a single rank.
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
    fn a_place_names_the_axes_with_several_ranks() {
        let ranks: Vec<_> = Job { tp: 4, pp: 2, ..Job::default() }.ranks().unwrap().collect();
        assert_eq!(place(&ranks[5]), "tp 1/4, pp 1/2");
        assert_eq!(place(&Topology::single()), "all");
    }
}
