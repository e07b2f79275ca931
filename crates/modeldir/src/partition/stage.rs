//! The tensors that a stage of a pipeline holds.

use std::ops::Range;

use super::error::PartitionError;
use super::matcher::Decided;
use super::rule::Pp;
use super::rules::{ExtraLayers, Partition};
use super::topology::Topology;
use crate::rank::Rank;
use crate::{Error, Result};

/// One stage of a pipeline.
pub(super) struct Stage {
    at: Rank,
    /// The layers of this stage.
    layers: Range<usize>,
    /// The layers of all stages.
    num_layers: usize,
    extra_layers: ExtraLayers,
}

impl Stage {
    pub(super) fn new(
        partition: &Partition,
        topology: &Topology,
        decided: &[Decided],
    ) -> Result<Self> {
        let (at, num_layers) = (topology.pp(), partition.count_layers(decided));
        let layers = topology.layer_split().layers(num_layers, at)?;
        Ok(Self { at, layers, num_layers, extra_layers: partition.extra_layers })
    }

    /// Whether the stage holds a tensor, from its rule and the layer in its name.
    pub(super) fn holds(&self, name: &str, pp: Option<Pp>, layer: Option<usize>) -> Result<bool> {
        let (rank, size) = (self.at.rank(), self.at.size());
        let (is_first, is_last) = (rank == 0, rank.checked_add(1) == Some(size));
        Ok(match (pp, layer) {
            (Some(Pp::Everywhere), _) | (None, None) => true,
            (Some(Pp::First), _) => is_first,
            (Some(Pp::Last), _) => is_last,
            (Some(Pp::Ends), _) => is_first || is_last,
            (Some(Pp::Skip), _) => false,
            (Some(Pp::Stage(stage)), _) if stage < size => stage == rank,
            (Some(Pp::Stage(number)), _) => {
                let kind = PartitionError::Number { what: "stage", number, count: size };
                return Err(Error::from(kind).in_tensor(name));
            }
            (Some(Pp::Layer) | None, Some(layer)) if layer < self.num_layers => {
                self.layers.contains(&layer)
            }
            (Some(Pp::Layer) | None, _) => self.extra_layers == ExtraLayers::Last && is_last,
        })
    }
}
