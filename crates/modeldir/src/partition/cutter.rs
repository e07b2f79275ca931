//! Selects the part of one tensor for one rank, by the rules that win for it.

use std::cell::OnceCell;
use std::ops::Range;

use tensorfile::Selection;

use super::error::PartitionError;
use super::expect::{Expected, is_weight};
use super::interval::{Line, Piece};
use super::locate;
use super::matcher::{Decided, Matcher};
use super::misfit::Misfit;
use super::placement::ExpertSplit;
use super::portion::{byte_len, restrict};
use super::report::PartitionReport;
use super::rule::{Ep, Unused};
use super::rules::Partition;
use super::siblings::Siblings;
use super::stage::Stage;
use super::target::{Target, source};
use super::topology::Topology;
use super::tp::{Axis, Misaligned, Tp};
use super::weight_layout::{Member, Obstacle, OnDisk, Side};
use crate::rank::Rank;
use crate::{Error, Quantization, Result};

/// The rules and tensors as seen by one rank.
pub(super) struct Cutter<'a> {
    partition: &'a Partition,
    topology: &'a Topology,
    quantization: Option<&'a Quantization>,
    siblings: Siblings<'a>,
    stage: Stage,
    num_experts: usize,
    experts: Experts,
    /// The last projection with heads.
    projection: Option<Projection<'a>>,
    /// By rule, whether its cut applied to a tensor, and whether any such tensor had its axis.
    cuts: Vec<Option<bool>>,
    replicated_bytes: u64,
    /// Bytes of tensors that no rule matches.
    unmatched_bytes: u64,
}

/// The experts of the rank in the last layer looked up.
#[derive(Default)]
struct Experts {
    layer: Option<usize>,
    count: Option<usize>,
    list: Vec<usize>,
}

/// A projection whose heads are as wide as those of the others of its module.
#[derive(Clone, Copy)]
struct Projection<'a> {
    name: &'a str,
    width: usize,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(
        partition: &'a Partition,
        topology: &'a Topology,
        quantization: Option<&'a Quantization>,
        siblings: Siblings<'a>,
        decided: &[Decided],
    ) -> Result<Self> {
        let named = |decided: &Decided| {
            let ep = decided.ep.and_then(|i| partition.rules.get(i)?.ep);
            decided.expert.filter(|_| ep == Some(Ep::Name))
        };
        let told =
            || decided.iter().filter_map(named).max().map_or(0, |last| last.saturating_add(1));
        Ok(Self {
            partition,
            topology,
            quantization,
            siblings,
            stage: Stage::new(partition, topology, decided)?,
            num_experts: partition.num_experts.unwrap_or_else(told),
            experts: Experts::default(),
            projection: None,
            cuts: vec![None; partition.rules.len()],
            replicated_bytes: 0,
            unmatched_bytes: 0,
        })
    }

    /// The part of the tensor at this position that the rank takes.
    pub(super) fn part(&mut self, position: usize, decided: &Decided) -> Result<Option<Selection>> {
        let Some(tensor) = self.siblings.get(position) else { return Ok(None) };
        let rule = |position: Option<usize>| self.partition.rules.get(position?);
        let pp = rule(decided.pp).and_then(|rule| rule.pp);
        if !self.stage.holds(tensor.name, pp, decided.layer)? {
            return Ok(None);
        }
        if !decided.matched {
            let bytes = byte_len(&tensor, &[]);
            self.unmatched_bytes = self.unmatched_bytes.saturating_add(bytes);
        }
        let ep = rule(decided.ep).and_then(|rule| rule.ep).unwrap_or(Ep::All);
        let order = rule(decided.layout).and_then(|rule| rule.layout).unwrap_or_default();
        let (siblings, quantization) = (self.siblings, self.quantization);
        let tp_rule = rule(decided.tp);
        let deciding = tp_rule.or_else(|| rule(decided.ep));
        let source = source(deciding);
        let (leaf, layout) = (tensor.leaf(), OnceCell::new());
        let member =
            Member { tensor, leaf, position, siblings, quantization, order, source, layout };
        let target = Target {
            member,
            rule: deciding,
            layer: decided.layer,
            ep,
            at: if ep == Ep::All { self.topology.tp() } else { self.topology.expert_tp() },
            tp: tp_rule.and_then(|rule| rule.tp.as_ref()).unwrap_or(&Tp::Replicate),
        };
        let skipped = *target.tp == Tp::Skip || (*target.tp == Tp::First && target.at.rank() > 0);
        if skipped || (ep == Ep::Name && !self.has_expert(&target, decided.expert)?) {
            return Ok(None);
        }
        let experts = self.expert_runs(&target)?;
        let pieces = self.pieces(&target, decided.tp)?;
        if let (Some((dim, _)), Some((other, _))) = (&experts, &pieces) {
            if dim == other {
                return Err(target.error(Misfit::ExpertsThere { dim: *dim }));
            }
        }
        Ok(Some(self.select(&target, experts, pieces)))
    }

    /// The rank's experts in a layer of `count` experts.
    fn experts(&mut self, target: &Target<'_>, count: usize) -> Result<&[usize]> {
        if (self.experts.layer, self.experts.count) != (target.layer, Some(count)) {
            let (split, ep) = (self.topology.expert_split(), self.topology.ep());
            let list = split.experts(count, target.layer, ep, self.partition.uneven);
            let list =
                list.map_err(|error| Error::from(error).in_tensor(target.member.tensor.name))?;
            self.experts = Experts { layer: target.layer, count: Some(count), list };
        }
        Ok(&self.experts.list)
    }

    /// Whether the rank has all experts, because they are not divided.
    fn has_all_experts(&self) -> bool {
        let split = self.topology.expert_split();
        self.topology.ep() == Rank::ONLY && !matches!(split, ExpertSplit::Slots(_))
    }

    fn has_expert(&mut self, target: &Target<'_>, expert: Option<usize>) -> Result<bool> {
        let Some(number) = expert.filter(|_| !self.has_all_experts()) else { return Ok(true) };
        let count = self.num_experts;
        if number >= count {
            let kind = PartitionError::Number { what: "expert", number, count };
            return Err(Error::from(kind).in_tensor(target.member.tensor.name));
        }
        Ok(self.experts(target, count)?.contains(&number))
    }

    /// The dimension of experts and the runs of it that the rank takes.
    fn expert_runs(&mut self, target: &Target<'_>) -> Result<Option<(usize, Vec<Range<usize>>)>> {
        if target.ep != Ep::Axis || self.has_all_experts() {
            return Ok(None);
        }
        let dim = locate::experts(&target.member);
        let Some(dim) = dim.map_err(|obstacle| target.stuck(Axis::Out, obstacle))? else {
            return Ok(None);
        };
        let count = count_experts(target, dim)?;
        let mut runs: Vec<Range<usize>> = Vec::new();
        for expert in self.experts(target, count)? {
            match runs.last_mut() {
                Some(last) if last.end == *expert => last.end = expert.saturating_add(1),
                _ => runs.push(*expert..expert.saturating_add(1)),
            }
        }
        Ok(Some((dim, runs)))
    }

    /// The dimension that is cut and the pieces of it that the rank takes.
    fn pieces(
        &mut self,
        target: &Target<'a>,
        rule: Option<usize>,
    ) -> Result<Option<(usize, Vec<Piece>)>> {
        let Tp::Split(split) = target.tp else { return Ok(None) };
        if target.at == Rank::ONLY {
            return Ok(None);
        }
        let misaligned = split.misaligned.unwrap_or(self.partition.misaligned);
        let located = match split.axis {
            Axis::Out => locate::axis(&target.member, Side::Out),
            Axis::In => locate::axis(&target.member, Side::In),
            Axis::Dim(dim) => Ok(target.member.plain(dim)),
        };
        if let Some(met) = rule.and_then(|rule| self.cuts.get_mut(rule)) {
            *met = Some(met.unwrap_or(false) || located != Ok(None));
        }
        let on_disk = match located {
            Ok(Some(on_disk)) => on_disk,
            Ok(None) => return Ok(None),
            Err(Obstacle::Uncuttable(_)) if misaligned == Misaligned::Cover => return Ok(None),
            Err(obstacle) => return Err(target.stuck(split.axis, obstacle)),
        };
        if let Some(expected) = target.expected() {
            self.check(target, expected, &on_disk)?;
        }
        let OnDisk { dim, per, stored, len } = on_disk;
        let uneven = split.uneven.unwrap_or(self.partition.uneven);
        let line = Line { split, len, per, stored, uneven, misaligned };
        let pieces = line.pieces_on_disk(target.at).map_err(|misfit| target.error(misfit))?;
        Ok(Some((dim, pieces)))
    }

    /// Refuses a tensor that is not what its rule expects.
    fn check(&mut self, target: &Target<'a>, expected: &Expected, axis: &OnDisk) -> Result<()> {
        if let Some(misfit) = expected.contradiction(&target.member) {
            return Err(target.error(misfit));
        }
        if let (Ep::Axis, Ok(Some(dim))) = (target.ep, locate::experts(&target.member)) {
            count_experts(target, dim)?;
        }
        let name = target.member.tensor.name;
        let heads = expected.heads.filter(|_| is_weight(target.member.leaf));
        let Some(heads) = heads.filter(|heads| axis.len.checked_rem(*heads) == Some(0)) else {
            return Ok(());
        };
        let width = axis.len.checked_div(heads).unwrap_or(0);
        let last = self.projection.replace(Projection { name, width });
        let is_beside = |last: &Projection<'_>| siblings_of(last.name) == siblings_of(name);
        match last.filter(is_beside).filter(|last| last.width != width) {
            Some(Projection { name, width: other }) => {
                let tensor = name.into();
                Err(target.error(Misfit::UnequalHeads { heads, width, tensor, other }))
            }
            None => Ok(()),
        }
    }

    /// Combines the cuts, and counts the bytes that other ranks take too.
    fn select(
        &mut self,
        target: &Target<'_>,
        experts: Option<(usize, Vec<Range<usize>>)>,
        pieces: Option<(usize, Vec<Piece>)>,
    ) -> Selection {
        let shape = target.member.tensor.shape;
        let mut selection = Selection::all();
        // By cut dimension, the number of elements that other ranks of the group hold too.
        let mut shared = [None, None];
        if let Some((dim, runs)) = experts {
            shared[0] = Some((dim, runs.iter().map(Range::len).sum()));
            selection = restrict(selection, shape, dim, runs);
        }
        if let Some((dim, pieces)) = pieces {
            let common = pieces.iter().filter(|piece| piece.shared);
            shared[1] = Some((dim, common.map(|piece| piece.range.len()).sum()));
            let ranges = pieces.into_iter().map(|piece| piece.range).collect();
            selection = restrict(selection, shape, dim, ranges);
        }
        if target.at != Rank::ONLY && *target.tp != Tp::First {
            let bytes = byte_len(&target.member.tensor, &shared);
            self.replicated_bytes = self.replicated_bytes.saturating_add(bytes);
        }
        selection
    }

    /// The report, after every tensor has been cut.
    pub(super) fn report(&self, matcher: &Matcher<'_>, decided: &[Decided]) -> PartitionReport {
        let lacks_axis = |i: usize| self.cuts.get(i) == Some(&Some(false));
        let rules = self.partition.rules.iter().enumerate();
        let unused = rules.filter(|(i, rule)| {
            rule.unused == Unused::Report && (!matcher.has_used(*i) || lacks_axis(*i))
        });
        let names = decided.iter().zip(self.siblings.0).filter(|(decided, _)| !decided.matched);
        PartitionReport {
            unused: unused.map(|(_, rule)| rule.pattern.to_string()).collect(),
            unmatched: names.map(|(_, tensor)| tensor.name.to_owned()).collect(),
            unmatched_bytes: self.unmatched_bytes,
            replicated_bytes: self.replicated_bytes,
        }
    }
}

/// The number of experts along a dimension, which is the expected one.
fn count_experts(target: &Target<'_>, dim: usize) -> Result<usize> {
    let count = target.member.tensor.shape.get(dim).copied().unwrap_or(0);
    let stated = target.expected().and_then(|expected| expected.experts);
    match stated.filter(|stated| *stated != count) {
        Some(stated) => Err(target.error(Misfit::Experts { count, stated })),
        None => Ok(count),
    }
}

/// The part of a name before the last two, which modules side by side have in common.
fn siblings_of(name: &str) -> Option<&str> {
    Some(name.rsplit_once('.')?.0.rsplit_once('.')?.0)
}
