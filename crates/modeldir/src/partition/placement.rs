//! The layers of a pipeline stage, and the experts of an expert-parallel rank.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "layers and experts of a rank lie within their number, and no size is 0"
)]

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::error::PartitionError;
use super::tp::Uneven;
use crate::rank::Rank;

/// How layers are divided among the stages of a pipeline.
///
/// Every stage gets the same number; the variants differ in the stages that get one more. 61 layers
/// over 4 stages are 16, 15, 15, 15 by `Front`, 15, 15, 15, 16 by `Back` and 15, 15, 16, 15 by
/// `Middle`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LayerSplit {
    /// The first stages get one more, as in transformers.
    #[default]
    Front,
    /// The last stages get one more, as in `SGLang`.
    Back,
    /// The stages from the last but one backwards get one more, as in vLLM.
    Middle,
    /// Each stage has its number of layers.
    Sizes(Vec<usize>),
}

impl LayerSplit {
    /// The layers of a stage.
    ///
    /// # Errors
    ///
    /// [`PartitionError::LayerSizes`] if the sizes do not match the number of stages or layers.
    pub fn layers(&self, num_layers: usize, stage: Rank) -> Result<Range<usize>, PartitionError> {
        self.check(stage)?;
        let (rank, size) = (stage.rank(), stage.size());
        let (each, more) = (num_layers / size, num_layers % size);
        // The number of stages before a given one that get one more layer.
        let extra = |stage: usize| match self {
            Self::Front => stage.min(more),
            Self::Back => stage.saturating_add(more).saturating_sub(size),
            _ => stage.saturating_add(more).saturating_add(1).saturating_sub(size).min(more),
        };
        if let Self::Sizes(sizes) = self {
            let total = sizes.iter().try_fold(0, |sum: usize, size| sum.checked_add(*size));
            if total != Some(num_layers) {
                let sizes = sizes.as_slice().into();
                return Err(PartitionError::LayerSizes {
                    sizes,
                    stages: size,
                    layers: Some(num_layers),
                });
            }
            let start = sizes.iter().take(rank).sum();
            return Ok(start..start + sizes.get(rank).copied().unwrap_or(0));
        }
        Ok(each * rank + extra(rank)..each * (rank + 1) + extra(rank + 1))
    }

    /// Refuses sizes for another number of stages.
    pub(super) fn check(&self, stage: Rank) -> Result<(), PartitionError> {
        match self {
            Self::Sizes(sizes) if sizes.len() != stage.size() => Err(PartitionError::LayerSizes {
                sizes: sizes.as_slice().into(),
                stages: stage.size(),
                layers: None,
            }),
            _ => Ok(()),
        }
    }
}

/// How experts are divided among the ranks of an expert-parallel group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExpertSplit {
    /// A run of consecutive experts for each rank.
    #[default]
    Linear,
    /// Expert `i` goes to rank `i` modulo the number of ranks.
    RoundRobin,
    /// The expert of each slot, rank by rank with equally many slots; an expert may be in several.
    /// One list for all layers, or a list for each layer by its number.
    Slots(Vec<Vec<usize>>),
}

impl ExpertSplit {
    /// The experts of a rank, in the order in which it holds them.
    ///
    /// `layer` chooses among the lists of [`Slots`](Self::Slots). `uneven` applies if the number of
    /// ranks does not divide that of the experts.
    ///
    /// # Errors
    ///
    /// [`PartitionError::UnevenExperts`] if the ranks do not divide them and `uneven` is [`Uneven::Error`],
    /// [`PartitionError::UnevenSlots`] if they do not divide the slots, whatever `uneven` says;
    /// [`PartitionError::NoExpertSlots`] if there is no list for the layer; [`PartitionError::ExpertSlot`] if one
    /// that is listed does not exist.
    pub fn experts(
        &self,
        num_experts: usize,
        layer: Option<usize>,
        rank: Rank,
        uneven: Uneven,
    ) -> Result<Vec<usize>, PartitionError> {
        match self {
            Self::Linear => Ok(linear(num_experts, rank, uneven)?.collect()),
            Self::RoundRobin => {
                if uneven == Uneven::Error {
                    linear(num_experts, rank, uneven)?;
                }
                Ok((rank.rank()..num_experts).step_by(rank.size()).collect())
            }
            Self::Slots(lists) => {
                let list = match (&lists[..], layer) {
                    ([all], _) => Some(all),
                    (_, Some(layer)) => lists.get(layer),
                    (_, None) => None,
                };
                let list = list.ok_or(PartitionError::NoExpertSlots)?;
                let absent = list.iter().find(|expert| **expert >= num_experts);
                if let Some(expert) = absent.copied() {
                    return Err(PartitionError::ExpertSlot { expert, count: num_experts });
                }
                let (count, size) = (list.len(), rank.size());
                if count % size != 0 {
                    return Err(PartitionError::UnevenSlots { count, size });
                }
                Ok(list.get(rank.share(count)).unwrap_or_default().to_vec())
            }
        }
    }
}

/// A run of consecutive experts.
fn linear(count: usize, rank: Rank, uneven: Uneven) -> Result<Range<usize>, PartitionError> {
    match uneven {
        Uneven::Error if count % rank.size() != 0 => {
            Err(PartitionError::UnevenExperts { count, size: rank.size() })
        }
        Uneven::Chunk => {
            let each = count.div_ceil(rank.size());
            let start = each.saturating_mul(rank.rank()).min(count);
            Ok(start..start.saturating_add(each).min(count))
        }
        _ => Ok(rank.share(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::{ExpertSplit, LayerSplit};
    use crate::partition::PartitionError;
    use crate::partition::tp::Uneven;
    use crate::rank::Rank;

    fn stages(split: &LayerSplit, layers: usize, size: usize) -> Vec<usize> {
        let stage = |rank| split.layers(layers, Rank::new(rank, size).unwrap()).unwrap().len();
        (0..size).map(stage).collect()
    }

    #[test]
    fn remaining_layers_go_where_each_convention_puts_them() {
        assert_eq!(stages(&LayerSplit::Front, 61, 4), [16, 15, 15, 15]);
        assert_eq!(stages(&LayerSplit::Back, 61, 4), [15, 15, 15, 16]);
        assert_eq!(stages(&LayerSplit::Middle, 61, 4), [15, 15, 16, 15]);
        assert_eq!(stages(&LayerSplit::Middle, 63, 4), [16, 16, 16, 15]);
        assert_eq!(stages(&LayerSplit::Sizes(vec![1, 0, 60]), 61, 3), [1, 0, 60]);
        assert_eq!(stages(&LayerSplit::Front, 2, 4), [1, 1, 0, 0]);
    }

    #[test]
    fn sizes_have_to_make_the_layers() {
        let error =
            LayerSplit::Sizes(vec![42, 36]).layers(80, Rank::new(0, 2).unwrap()).unwrap_err();
        assert!(matches!(error, PartitionError::LayerSizes { layers: Some(80), .. }), "{error}");
    }

    fn experts(split: &ExpertSplit, uneven: Uneven, count: usize, size: usize) -> Vec<Vec<usize>> {
        let of =
            |rank| split.experts(count, Some(1), Rank::new(rank, size).unwrap(), uneven).unwrap();
        (0..size).map(of).collect()
    }

    #[test]
    fn experts_are_runs_or_dealt() {
        let (linear, dealt) = (ExpertSplit::Linear, ExpertSplit::RoundRobin);
        assert_eq!(experts(&linear, Uneven::Error, 4, 2), [[0, 1], [2, 3]]);
        assert_eq!(experts(&dealt, Uneven::Error, 4, 2), [[0, 2], [1, 3]]);
        assert_eq!(experts(&linear, Uneven::Balanced, 5, 3), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(experts(&linear, Uneven::Chunk, 4, 3), [vec![0, 1], vec![2, 3], vec![]]);
        assert_eq!(experts(&dealt, Uneven::Balanced, 4, 3), [vec![0, 3], vec![1], vec![2]]);
        for split in [linear, dealt] {
            let error =
                split.experts(256, None, Rank::new(0, 3).unwrap(), Uneven::Error).unwrap_err();
            assert!(
                matches!(error, PartitionError::UnevenExperts { count: 256, size: 3, .. }),
                "{error}"
            );
        }
    }

    #[test]
    fn slots_may_repeat_experts_and_differ_by_layer() {
        let one = ExpertSplit::Slots(vec![vec![0, 1, 1, 2]]);
        assert_eq!(experts(&one, Uneven::Error, 3, 2), [[0, 1], [1, 2]]);
        let each = ExpertSplit::Slots(vec![vec![], vec![2, 0, 1, 0]]);
        assert_eq!(experts(&each, Uneven::Error, 3, 2), [[2, 0], [1, 0]]);
        let at = Rank::new(0, 2).unwrap();
        for layer in [None, Some(2)] {
            let error = each.experts(3, layer, at, Uneven::Error).unwrap_err();
            assert!(matches!(error, PartitionError::NoExpertSlots), "{error}");
        }
        for uneven in [Uneven::Error, Uneven::Chunk, Uneven::Balanced] {
            let error = one.experts(3, None, Rank::new(0, 3).unwrap(), uneven).unwrap_err();
            assert_eq!(error.to_string(), "4 expert slots over 3 ranks; 2 or 4 would do");
        }
        let error = each.experts(2, Some(1), at, Uneven::Error).unwrap_err();
        assert!(matches!(error, PartitionError::ExpertSlot { expert: 2, .. }), "{error}");
    }
}
