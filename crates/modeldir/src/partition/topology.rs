//! The rank and the number of ranks for each kind of parallelism.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::placement::{ExpertSplit, LayerSplit};
use crate::launch::LaunchError;
use crate::{Error, Result, launch};

/// A rank and how many there are: `1/4` is the second of four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct At {
    rank: usize,
    size: usize,
}

impl At {
    /// The only rank.
    pub const ONLY: Self = Self { rank: 0, size: 1 };

    /// Rank `rank` of `size`, counted from 0.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Impossible`] if there is no such rank.
    pub fn new(rank: usize, size: usize) -> Result<Self, LaunchError> {
        launch::Rank::new(rank, size).map(Self::from)
    }

    /// The rank, counted from 0.
    #[must_use]
    pub const fn rank(self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    #[must_use]
    pub const fn size(self) -> usize {
        self.size
    }

    /// The run of whole things that this rank takes of `count`, the first ranks one more.
    pub(super) const fn balanced(self, count: usize) -> std::ops::Range<usize> {
        let (each, more) = (count / self.size, count % self.size);
        let extra = if self.rank < more { self.rank } else { more };
        let start = each * self.rank + extra;
        start..start + each + if self.rank < more { 1 } else { 0 }
    }
}

impl From<launch::Rank> for At {
    fn from(rank: launch::Rank) -> Self {
        Self { rank: rank.rank(), size: rank.size() }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.rank, self.size)
    }
}

impl FromStr for At {
    type Err = LaunchError;

    /// Reads `rank/size`.
    fn from_str(text: &str) -> Result<Self, LaunchError> {
        let numbers = text.split_once('/').and_then(|(rank, size)| {
            Some((rank.parse::<usize>().ok()?, size.parse::<usize>().ok()?))
        });
        let (rank, size) = numbers.ok_or_else(|| LaunchError::NotARank { text: text.into() })?;
        Self::new(rank, size)
    }
}

impl TryFrom<String> for At {
    type Error = LaunchError;

    fn try_from(text: String) -> Result<Self, LaunchError> {
        text.parse()
    }
}

impl From<At> for String {
    fn from(at: At) -> Self {
        at.to_string()
    }
}

/// The rank and the number of ranks for each kind of parallelism, and how layers and experts are
/// divided.
///
/// Tensor parallelism cuts tensors, pipeline parallelism divides layers, expert parallelism divides
/// experts. Experts have a tensor-parallel rank of their own.
///
/// ```
/// use modeldir::{At, LayerSplit, Topology};
///
/// let topology = Topology::tensor_parallel(3, 4)?.pipeline(0, 2, LayerSplit::Front)?;
/// assert_eq!(topology.tp(), At::new(3, 4)?);
///
/// // The same from one number: ranks of a stage are neighbours.
/// assert_eq!(Topology::from_flat_rank(3, 2, 4)?, topology);
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TopologyForm", into = "TopologyForm")]
pub struct Topology {
    tp: At,
    pp: At,
    ep: At,
    expert_tp: At,
    layers: LayerSplit,
    experts: ExpertSplit,
}

impl Topology {
    /// One rank that holds everything.
    #[must_use]
    pub const fn single() -> Self {
        let (only, layers, experts) = (At::ONLY, LayerSplit::Front, ExpertSplit::Linear);
        Self { tp: only, pp: only, ep: only, expert_tp: only, layers, experts }
    }

    /// Rank `rank` of `size`, tensor-parallel. Experts are cut in the same way, until
    /// [`experts`](Self::experts) shares them out.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Impossible`] if there is no such rank.
    pub fn tensor_parallel(rank: usize, size: usize) -> Result<Self> {
        let at = At::new(rank, size)?;
        Ok(Self { tp: at, expert_tp: at, ..Self::single() })
    }

    /// Rank `rank` of `pp_size * tp_size`, the ranks of a pipeline stage being neighbours.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Impossible`] if there is no such rank.
    pub fn from_flat_rank(rank: usize, pp_size: usize, tp_size: usize) -> Result<Self> {
        let size = pp_size.saturating_mul(tp_size);
        let all = At::new(rank, size)?;
        let stage = all.rank / tp_size;
        Self::tensor_parallel(rank % tp_size, tp_size)?.pipeline(stage, pp_size, LayerSplit::Front)
    }

    /// The same as stage `rank` of a pipeline of `size` stages.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Impossible`] if there is no such stage;
    /// [`PartitionError::LayerSizes`](super::PartitionError::LayerSizes) if `layers` lists another
    /// number of stages.
    pub fn pipeline(self, rank: usize, size: usize, layers: LayerSplit) -> Result<Self> {
        let pp = At::new(rank, size)?;
        layers.check(pp)?;
        Ok(Self { pp, layers, ..self })
    }

    /// The same with experts shared out over `size` ranks, each whole; ask
    /// [`expert_tensor_parallel`](Self::expert_tensor_parallel) to cut them as well.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Impossible`] if there is no such rank.
    pub fn experts(self, rank: usize, size: usize, experts: ExpertSplit) -> Result<Self> {
        Ok(Self { ep: At::new(rank, size)?, expert_tp: At::ONLY, experts, ..self })
    }

    /// The same with experts cut over `size` ranks, whatever the rest of the model is cut over.
    ///
    /// # Errors
    ///
    /// [`LaunchError::Impossible`] if there is no such rank.
    pub fn expert_tensor_parallel(self, rank: usize, size: usize) -> Result<Self> {
        Ok(Self { expert_tp: At::new(rank, size)?, ..self })
    }

    /// The tensor-parallel rank.
    #[must_use]
    pub const fn tp(&self) -> At {
        self.tp
    }

    /// The pipeline stage.
    #[must_use]
    pub const fn pp(&self) -> At {
        self.pp
    }

    /// The expert-parallel rank.
    #[must_use]
    pub const fn ep(&self) -> At {
        self.ep
    }

    /// The rank that cuts experts.
    #[must_use]
    pub const fn expert_tp(&self) -> At {
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

/// The JSON form of [`Topology`]: kinds left out are not parallel.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Topology", deny_unknown_fields)]
struct TopologyForm {
    #[serde(default = "only")]
    tp: At,
    #[serde(default = "only")]
    pp: At,
    #[serde(default = "only")]
    ep: At,
    /// Where it is left out, that of `tp` if experts are not shared out.
    #[serde(default)]
    expert_tp: Option<At>,
    #[serde(default)]
    layers: LayerSplit,
    #[serde(default)]
    experts: ExpertSplit,
}

const fn only() -> At {
    At::ONLY
}

impl TryFrom<TopologyForm> for Topology {
    type Error = Error;

    fn try_from(form: TopologyForm) -> Result<Self> {
        let TopologyForm { tp, pp, ep, expert_tp, layers, experts } = form;
        let expert_tp = expert_tp.unwrap_or(if ep == At::ONLY { tp } else { At::ONLY });
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
    use super::{At, Topology};
    use crate::launch::LaunchError;
    use crate::{ExpertSplit, LayerSplit};

    #[test]
    fn neighbours_of_flat_ranks_are_of_one_stage() {
        let places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)];
        for (rank, (stage, part)) in places.into_iter().enumerate() {
            let topology = Topology::from_flat_rank(rank, 2, 3).unwrap();
            assert_eq!(topology.pp(), At::new(stage, 2).unwrap());
            assert_eq!([topology.tp(), topology.expert_tp()], [At::new(part, 3).unwrap(); 2]);
        }
    }

    #[test]
    fn layers_and_experts_are_shared_out_as_was_asked() {
        let (layers, experts) =
            (LayerSplit::Sizes(vec![1, 2]), ExpertSplit::Slots(vec![vec![0], vec![1]]));
        let topology = Topology::single().pipeline(0, 2, layers.clone()).unwrap();
        let topology = topology.experts(1, 2, experts.clone()).unwrap();
        assert_eq!((topology.layer_split(), topology.expert_split()), (&layers, &experts));
    }

    #[test]
    fn ranks_that_are_not_there_are_refused() {
        for (rank, size) in [(4, 4), (0, 0), (usize::MAX, 1)] {
            assert!(
                matches!(At::new(rank, size), Err(LaunchError::Impossible { .. })),
                "{rank}/{size}"
            );
            assert!(Topology::tensor_parallel(rank, size).is_err());
        }
        for text in ["", "1", "1/", "a/2", "-1/2", "1/2/3"] {
            assert!(matches!(text.parse::<At>(), Err(LaunchError::NotARank { .. })), "{text}");
        }
        assert!(Topology::from_flat_rank(0, 0, 0).is_err());
        assert!(Topology::from_flat_rank(8, 2, 4).is_err());
    }

    #[test]
    fn experts_follow_tp_until_they_are_shared_out() {
        let topology = Topology::tensor_parallel(1, 2).unwrap();
        assert_eq!(topology.expert_tp(), topology.tp());
        let topology = topology.experts(3, 4, ExpertSplit::Linear).unwrap();
        assert_eq!((topology.ep().rank(), topology.expert_tp()), (3, At::ONLY));
        let topology = topology.expert_tensor_parallel(0, 2).unwrap();
        assert_eq!(topology.expert_tp(), At::new(0, 2).unwrap());
    }

    #[test]
    fn json_has_short_ranks_and_defaults() {
        let read: Topology = serde_json::from_str(r#"{"tp": "1/4"}"#).unwrap();
        assert_eq!(read, Topology::tensor_parallel(1, 4).unwrap());
        let text = r#"{"pp": "0/3", "layers": {"sizes": [1, 2]}}"#;
        let error = serde_json::from_str::<Topology>(text).unwrap_err().to_string();
        assert!(error.contains("expected 3 stages"), "{error}");
        let sized = Topology::single().pipeline(1, 2, LayerSplit::Sizes(vec![42, 36])).unwrap();
        let text = serde_json::to_string(&sized).unwrap();
        assert_eq!(serde_json::from_str::<Topology>(&text).unwrap(), sized);
    }
}
