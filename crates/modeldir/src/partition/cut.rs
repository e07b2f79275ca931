//! Applies rules: selects the part of each tensor that one rank takes.

use tensorfile::Selection;

use super::cutter::Cutter;
use super::error::PartitionError;
use super::kinds::Kinds;
use super::matcher::{Decided, Matcher};
use super::report::PartitionReport;
use super::rules::{Partition, Unmatched};
use super::siblings::{Siblings, TensorShape};
use super::topology::Topology;
use crate::{Quantization, Result};

/// The part of each tensor that one rank takes, and a report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut {
    /// The part of each tensor, in the order given; `None` if the rank takes nothing.
    pub parts: Vec<Option<Selection>>,
    /// Unused rules, unmatched tensors and replicated bytes.
    pub report: PartitionReport,
}

impl Partition {
    /// Selects the part of each tensor for the rank that `topology` describes.
    ///
    /// `tensors` must be all tensors of the model, in any order: a weight and its companions (such
    /// as scales) are cut together. `quantization` gives what shapes do not show: packed bits, and
    /// sizes of blocks. Does no I/O; takes time in proportion to the number of tensors.
    ///
    /// # Errors
    ///
    /// - [`PartitionError::Cut`] if a tensor cannot be cut as its rule says.
    /// - [`PartitionError::UnevenExperts`], [`PartitionError::UnevenSlots`],
    ///   [`PartitionError::NoExpertSlots`] or [`PartitionError::ExpertSlot`] if experts cannot be divided among the ranks.
    /// - [`PartitionError::LayerSizes`] if the given sizes of stages do not add up to all layers.
    /// - [`PartitionError::Number`] if the expert or stage of a tensor does not exist.
    /// - [`PartitionError::Pattern`] for a rule that contradicts itself.
    /// - [`PartitionError::UnusedRules`] or [`PartitionError::UnmatchedTensors`] if
    ///   [`unmatched`](Self::unmatched) makes them errors.
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

    /// As [`cut`](Self::cut), for tensors in name order.
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
        let is_refused = self.unmatched == Unmatched::Error;
        if is_refused && !report.unused.is_empty() {
            return Err(PartitionError::UnusedRules { patterns: report.unused.into() }.into());
        }
        if is_refused && !report.unmatched.is_empty() {
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
        let mut order: Vec<(usize, TensorShape<'_>)> =
            tensors.iter().copied().enumerate().collect();
        order.sort_by_key(|(_, tensor)| tensor.name);
        let sorted: Vec<TensorShape<'_>> = order.iter().map(|(_, tensor)| *tensor).collect();
        let Cut { parts, report } = self.cut_sorted(topology, quantization, &sorted)?;
        let mut placed = vec![None; tensors.len()];
        for ((i, _), part) in order.into_iter().zip(parts) {
            if let Some(place) = placed.get_mut(i) {
                *place = part;
            }
        }
        Ok(Cut { parts: placed, report })
    }

    /// The number of layers, as stated or else from the names.
    pub(super) fn count_layers(&self, decided: &[Decided]) -> usize {
        let told = || decided.iter().filter_map(|decided| decided.layer).max();
        self.num_layers.unwrap_or_else(|| told().map_or(0, |last| last.saturating_add(1)))
    }

    /// The rules that win for each name, and the matcher that knows the used ones.
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

    use crate::Partition;

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
}
