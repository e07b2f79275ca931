//! From rules to the part of each tensor that one rank takes.

use std::fmt;

use tensorfile::Selection;

use super::Partition;
use super::cutter::Cutter;
use super::error::PartitionError;
use super::kinds::Kinds;
use super::rules::{Decided, Matcher};
use super::siblings::{Siblings, TensorShape};
use super::topology::Topology;
use super::words::Shown;
use crate::{Quantization, Result};

/// What one rank takes of each tensor, and what was odd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The part of each tensor, in the order in which they were given; none if it takes nothing.
    pub parts: Vec<Option<Selection>>,
    /// What was odd.
    pub report: PartitionReport,
}

/// What is odd about rules and tensors together, and what ranks hold alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionReport {
    /// The patterns of rules that match no tensor, or cut along an axis that no tensor has that
    /// they match. [`Rule::optional`](super::Rule::optional) ones are left out.
    pub unused: Vec<String>,
    /// The tensors that no rule matches. Tensor-parallel ranks hold all of them.
    pub unmatched: Vec<String>,
    /// Bytes that this rank takes and other ranks of its tensor-parallel group take too.
    pub replicated_bytes: u64,
}

impl fmt::Display for PartitionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, names) in [
            ("rules that match nothing", &self.unused),
            ("tensors that no rule matches", &self.unmatched),
        ] {
            if !names.is_empty() {
                writeln!(f, "{} {what}: {}", names.len(), Shown(names))?;
            }
        }
        writeln!(f, "{} bytes on other ranks too", self.replicated_bytes)
    }
}

impl Partition {
    /// The part of each tensor that the rank of `topology` takes.
    ///
    /// `tensors` are all of the model, so that those which belong together are cut alike; their
    /// order does not matter. `quantization` tells what shapes leave open: packed bits, and sizes
    /// of blocks. Reads no files; takes time in proportion to the tensors.
    ///
    /// # Errors
    ///
    /// - [`PartitionError::Cut`] if a tensor cannot be cut as its rule says.
    /// - [`PartitionError::UnevenExperts`], [`PartitionError::UnevenSlots`], [`PartitionError::NoExpertSlots`] or
    ///   [`PartitionError::ExpertSlot`] if experts cannot be shared out.
    /// - [`PartitionError::LayerSizes`] if stages of given sizes do not make the layers.
    /// - [`PartitionError::Number`] for a tensor of an expert or a stage that does not exist.
    /// - [`PartitionError::Pattern`] for a rule that contradicts itself.
    /// - [`PartitionError::UnusedRules`] or [`PartitionError::UnmatchedTensors`] if the rules are [`strict`](Self::strict).
    pub fn cut(
        &self,
        topology: &Topology,
        quantization: Option<&Quantization>,
        tensors: &[TensorShape<'_>],
    ) -> Result<Cut> {
        if tensors.is_sorted_by_key(|tensor| tensor.name) {
            self.cut_sorted(topology, quantization, tensors)
        } else {
            self.cut_unsorted(topology, quantization, tensors)
        }
    }

    /// As [`cut`](Self::cut), of tensors in the order of their names.
    pub(crate) fn cut_sorted(
        &self,
        topology: &Topology,
        quantization: Option<&Quantization>,
        tensors: &[TensorShape<'_>],
    ) -> Result<Cut> {
        let (decided, matcher) = self.decide(tensors.iter().map(|tensor| tensor.name))?;
        let mut cutter = Cutter::new(self, topology, quantization, Siblings(tensors), &decided)?;
        let parts = decided.iter().enumerate().map(|(i, decided)| cutter.part(i, decided));
        let parts = parts.collect::<Result<_>>()?;
        let report = cutter.report(&matcher, &decided);
        if self.strict && !report.unused.is_empty() {
            return Err(PartitionError::UnusedRules { patterns: report.unused.into() }.into());
        }
        if self.strict && !report.unmatched.is_empty() {
            return Err(
                PartitionError::UnmatchedTensors { tensors: report.unmatched.into() }.into()
            );
        }
        Ok(Cut { parts, report })
    }

    fn cut_unsorted(
        &self,
        topology: &Topology,
        quantization: Option<&Quantization>,
        tensors: &[TensorShape<'_>],
    ) -> Result<Cut> {
        let mut order: Vec<usize> = (0..tensors.len()).collect();
        order.sort_by_key(|i| tensors[*i].name);
        let sorted: Vec<TensorShape<'_>> = order.iter().map(|i| tensors[*i]).collect();
        let Cut { parts, report } = self.cut_sorted(topology, quantization, &sorted)?;
        let mut placed = vec![None; tensors.len()];
        for (i, part) in order.into_iter().zip(parts) {
            placed[i] = part;
        }
        Ok(Cut { parts: placed, report })
    }

    /// The number of layers, as stated or as the names tell it.
    pub(super) fn count_layers(&self, decided: &[Decided]) -> usize {
        let told = || decided.iter().filter_map(|decided| decided.layer).max();
        self.num_layers.unwrap_or_else(|| told().map_or(0, |last| last + 1))
    }

    /// The rules that decide about each name, and which of the rules did.
    pub(super) fn decide<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(Vec<Decided>, Matcher<'_>)> {
        let mut matcher = Matcher::new(&self.rules)?;
        let mut kinds = Kinds::default();
        let decided = names.map(|name| {
            if matcher.tells_numbers_apart() {
                matcher.decide(name)
            } else {
                kinds.decide(name, |kind| matcher.decide(kind))
            }
        });
        let decided = decided.collect();
        Ok((decided, matcher))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Partition, PartitionReport};

    #[test]
    fn rules_may_be_about_some_numbers() {
        let layers = |rules| {
            let partition: Partition = serde_json::from_value(json!({ "rules": rules })).unwrap();
            let names = ["h.0.w", "h.1.w", "h.12.w"];
            let (decided, _) = partition.decide(names.into_iter()).unwrap();
            decided.iter().map(|decided| (decided.tp, decided.layer)).collect::<Vec<_>>()
        };
        let any = json!([{"match": "h.{l}.w", "tp": "row"}]);
        assert_eq!(layers(any), [(Some(0), Some(0)), (Some(0), Some(1)), (Some(0), Some(12))]);
        let some = json!([{"match": "h.1*.w", "tp": "row"}]);
        assert_eq!(layers(some), [(None, Some(0)), (Some(0), Some(1)), (Some(0), Some(12))]);
    }

    #[test]
    fn a_report_shows_what_is_odd_and_nothing_else() {
        let mut report = PartitionReport { replicated_bytes: 12, ..PartitionReport::default() };
        assert_eq!(report.to_string(), "12 bytes on other ranks too\n");
        report.unused.push("a.*".to_owned());
        report.unmatched.extend((0..12).map(|i| format!("w{i}")));
        let shown = "1 rules that match nothing: \"a.*\"\n12 tensors that no rule matches: \"w0\", \"w1\", \
            \"w2\", \"w3\", \"w4\", \"w5\", \"w6\", \"w7\", \"w8\", \"w9\" and 2 more\n\
            12 bytes on other ranks too\n";
        assert_eq!(report.to_string(), shown);
    }
}
