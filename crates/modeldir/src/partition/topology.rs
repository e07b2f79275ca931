//! The rank and the number of ranks for each kind of parallelism.

use serde::{Deserialize, Serialize};

use super::error::PartitionError;
use super::placement::{ExpertSplit, LayerSplit};
use crate::rank::Rank;

/// The place of one process in a parallel job: its rank and the number of ranks for each kind of
/// parallelism, and how layers and experts are divided.
///
/// Tensor parallelism cuts tensors, pipeline parallelism divides layers, expert parallelism divides
/// experts. Tensors of experts are cut by a separate rank, [`expert_tp`](Self::expert_tp).
///
/// ```
/// use modeldir::partition::LayerSplit;
/// use modeldir::{Rank, Topology};
///
/// let topology = Topology::tensor_parallel(Rank::new(3, 4)?);
/// let topology = topology.pipeline(Rank::new(0, 2)?, LayerSplit::Front)?;
/// assert_eq!(topology.tp(), Rank::new(3, 4)?);
/// # Ok::<(), modeldir::Error>(())
/// ```
///
/// [`Job`](super::Job) computes it from one rank and the number of ranks of each kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TopologyForm", into = "TopologyForm")]
pub struct Topology {
    tp: Rank,
    pp: Rank,
    ep: Rank,
    expert_tp: Rank,
    layers: LayerSplit,
    experts: ExpertSplit,
}

impl Topology {
    /// The only rank of a job, which holds the whole model.
    #[must_use]
    pub const fn single() -> Self {
        let (only, layers, experts) = (Rank::ONLY, LayerSplit::Front, ExpertSplit::Linear);
        Self { tp: only, pp: only, ep: only, expert_tp: only, layers, experts }
    }

    /// A tensor-parallel rank, such as the one from
    /// [`launch::rank_from_env`](crate::launch::rank_from_env).
    ///
    /// It also cuts the tensors of experts, unless [`experts`](Self::experts) divides experts.
    #[must_use]
    pub fn tensor_parallel(rank: impl Into<Rank>) -> Self {
        let tp = rank.into();
        Self { tp, expert_tp: tp, ..Self::single() }
    }

    /// Adds the stage of a pipeline, and how layers are divided among the stages.
    ///
    /// # Errors
    ///
    /// [`PartitionError::LayerSizes`] if `layers` lists sizes for another number of stages.
    pub fn pipeline(
        self,
        stage: impl Into<Rank>,
        layers: LayerSplit,
    ) -> Result<Self, PartitionError> {
        let pp = stage.into();
        layers.check(pp)?;
        Ok(Self { pp, layers, ..self })
    }

    /// Adds an expert-parallel rank, and how experts are divided. Each rank then has whole experts;
    /// call [`expert_tensor_parallel`](Self::expert_tensor_parallel) afterwards to cut them too.
    #[must_use]
    pub fn experts(self, rank: impl Into<Rank>, experts: ExpertSplit) -> Self {
        Self { ep: rank.into(), expert_tp: Rank::ONLY, experts, ..self }
    }

    /// Sets the rank that cuts the tensors of experts, independent of that for other tensors.
    #[must_use]
    pub fn expert_tensor_parallel(self, rank: impl Into<Rank>) -> Self {
        Self { expert_tp: rank.into(), ..self }
    }

    /// The tensor-parallel rank.
    #[must_use]
    pub const fn tp(&self) -> Rank {
        self.tp
    }

    /// The pipeline stage.
    #[must_use]
    pub const fn pp(&self) -> Rank {
        self.pp
    }

    /// The expert-parallel rank.
    #[must_use]
    pub const fn ep(&self) -> Rank {
        self.ep
    }

    /// The rank that cuts the tensors of experts.
    #[must_use]
    pub const fn expert_tp(&self) -> Rank {
        self.expert_tp
    }

    /// How layers are divided.
    #[must_use]
    pub const fn layer_split(&self) -> &LayerSplit {
        &self.layers
    }

    /// How experts are divided.
    #[must_use]
    pub const fn expert_split(&self) -> &ExpertSplit {
        &self.experts
    }
}

/// The JSON form of [`Topology`]; a kind of parallelism that is left out has one rank.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Topology", deny_unknown_fields)]
struct TopologyForm {
    #[serde(default = "only")]
    tp: Rank,
    #[serde(default = "only")]
    pp: Rank,
    #[serde(default = "only")]
    ep: Rank,
    /// By default the rank of `tp` if experts are not divided, else a single rank.
    #[serde(default)]
    expert_tp: Option<Rank>,
    #[serde(default)]
    layers: LayerSplit,
    #[serde(default)]
    experts: ExpertSplit,
}

const fn only() -> Rank {
    Rank::ONLY
}

impl TryFrom<TopologyForm> for Topology {
    type Error = PartitionError;

    fn try_from(form: TopologyForm) -> Result<Self, PartitionError> {
        let TopologyForm { tp, pp, ep, expert_tp, layers, experts } = form;
        let expert_tp = expert_tp.unwrap_or(if ep == Rank::ONLY { tp } else { Rank::ONLY });
        layers.check(pp)?;
        Ok(Self { tp, pp, ep, expert_tp, layers, experts })
    }
}

impl From<Topology> for TopologyForm {
    fn from(topology: Topology) -> Self {
        let Topology { tp, pp, ep, expert_tp, layers, experts } = topology;
        Self { tp, pp, ep, expert_tp: Some(expert_tp), layers, experts }
    }
}

#[cfg(test)]
mod tests {
    use super::Topology;
    use crate::partition::{ExpertSplit, LayerSplit};
    use crate::rank::Rank;

    fn rank(rank: usize, size: usize) -> Rank {
        Rank::new(rank, size).unwrap()
    }

    #[test]
    fn layers_and_experts_are_shared_out_as_was_asked() {
        let (layers, experts) =
            (LayerSplit::Sizes(vec![1, 2]), ExpertSplit::Slots(vec![vec![0], vec![1]]));
        let topology = Topology::single().pipeline(rank(0, 2), layers.clone()).unwrap();
        let topology = topology.experts(rank(1, 2), experts.clone());
        assert_eq!((topology.layer_split(), topology.expert_split()), (&layers, &experts));
    }

    #[test]
    fn experts_follow_tp_until_they_are_shared_out() {
        let topology = Topology::tensor_parallel(rank(1, 2));
        assert_eq!(topology.expert_tp(), topology.tp());
        let topology = topology.experts(rank(3, 4), ExpertSplit::Linear);
        assert_eq!((topology.ep().rank(), topology.expert_tp()), (3, Rank::ONLY));
        let topology = topology.expert_tensor_parallel(rank(0, 2));
        assert_eq!(topology.expert_tp(), rank(0, 2));
    }

    #[test]
    fn json_has_short_ranks_and_defaults() {
        let read: Topology = serde_json::from_str(r#"{"tp": "1/4"}"#).unwrap();
        assert_eq!(read, Topology::tensor_parallel(rank(1, 4)));
        let text = r#"{"pp": "0/3", "layers": {"sizes": [1, 2]}}"#;
        let error = serde_json::from_str::<Topology>(text).unwrap_err().to_string();
        assert!(error.contains("expected 3 stages"), "{error}");
        let sizes = LayerSplit::Sizes(vec![42, 36]);
        let sized = Topology::single().pipeline(rank(1, 2), sizes).unwrap();
        let text = serde_json::to_string(&sized).unwrap();
        assert_eq!(serde_json::from_str::<Topology>(&text).unwrap(), sized);
    }
}
