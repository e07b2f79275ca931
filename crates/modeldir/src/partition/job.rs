//! `Job`: the number of ranks of each kind, and the place of each rank of the job.

use super::error::PartitionError;
use super::placement::{ExpertSplit, LayerSplit};
use super::topology::Topology;
use crate::rank::Rank;

/// The number of ranks of a job, by kind of parallelism.
///
/// Stages of the pipeline have consecutive ranks. Within a stage the same ranks cut tensors and
/// divide experts: their number is the larger of `tp` and `ep`, and the smaller one divides it. If
/// `ep` is smaller, the ranks that hold the same experts cut them; if `tp` is smaller, groups of
/// ranks hold the same part of all other tensors.
///
/// ```
/// use modeldir::Rank;
/// use modeldir::partition::Job;
///
/// let job = Job { tp: 4, ep: 2, ..Job::default() };
/// let topology = job.rank(Rank::new(2, 4)?)?;
/// assert_eq!(topology.tp(), Rank::new(2, 4)?);
/// assert_eq!(topology.ep(), Rank::new(1, 2)?);
/// assert_eq!(topology.expert_tp(), Rank::new(0, 2)?);
/// # Ok::<(), modeldir::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    /// Tensor-parallel ranks, which cut tensors.
    pub tp: usize,
    /// Stages of the pipeline, which divide layers.
    pub pp: usize,
    /// Expert-parallel ranks of a stage, which divide experts.
    pub ep: usize,
}

/// One rank.
impl Default for Job {
    fn default() -> Self {
        Self { tp: 1, pp: 1, ep: 1 }
    }
}

impl Job {
    /// The number of ranks.
    #[must_use]
    pub fn num_ranks(self) -> usize {
        self.pp.saturating_mul(self.tp.max(self.ep))
    }

    /// The place of a rank of the job. [`launch::rank_from_env`](crate::launch::rank_from_env)
    /// returns the rank of this process.
    ///
    /// # Errors
    ///
    /// [`PartitionError::JobSize`] if the job has another number of ranks; and as
    /// [`ranks`](Self::ranks).
    pub fn rank(self, rank: impl Into<Rank>) -> Result<Topology, PartitionError> {
        let rank = rank.into();
        if rank.size() != self.num_ranks() {
            return Err(PartitionError::JobSize { ranks: self.num_ranks(), size: rank.size() });
        }
        self.topology(rank).ok_or_else(|| self.uneven())
    }

    /// Every rank of the job, in order.
    ///
    /// # Errors
    ///
    /// [`PartitionError::UnevenJob`] if a number is 0, or neither of `tp` and `ep` divides the other.
    pub fn ranks(self) -> Result<impl Iterator<Item = Topology>, PartitionError> {
        let ranks = Rank::all(self.num_ranks());
        // The numbers fit for all ranks if they fit for one.
        let first = ranks.clone().next().and_then(|rank| self.topology(rank));
        first.ok_or_else(|| self.uneven())?;
        Ok(ranks.filter_map(move |rank| self.topology(rank)))
    }

    /// The place of a rank of the job, if the numbers divide one another.
    fn topology(self, rank: Rank) -> Option<Topology> {
        let in_stage = self.tp.max(self.ep);
        let (stage, in_stage_rank) = rank.split(in_stage)?;
        let (_, tp) = in_stage_rank.split(self.tp)?;
        let (ep, expert_tp) = in_stage_rank.split(in_stage.checked_div(self.ep)?)?;
        let topology = Topology::tensor_parallel(tp).pipeline(stage, LayerSplit::Front).ok()?;
        let topology = topology.experts(ep, ExpertSplit::Linear).expert_tensor_parallel(expert_tp);
        (ep.size() == self.ep).then_some(topology)
    }

    const fn uneven(self) -> PartitionError {
        let Self { tp, pp, ep } = self;
        PartitionError::UnevenJob { tp, pp, ep }
    }
}

#[cfg(test)]
mod tests {
    use super::Job;
    use crate::partition::{LayerSplit, PartitionError, Topology};
    use crate::rank::Rank;

    fn ranks(tp: usize, pp: usize, ep: usize) -> Vec<Topology> {
        Job { tp, pp, ep }.ranks().unwrap().collect()
    }

    #[test]
    fn ranks_of_a_stage_are_neighbours() {
        let places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)];
        for (topology, (stage, part)) in ranks(3, 2, 1).into_iter().zip(places) {
            assert_eq!(topology.pp(), Rank::new(stage, 2).unwrap());
            assert_eq!([topology.tp(), topology.expert_tp()], [Rank::new(part, 3).unwrap(); 2]);
            assert_eq!(topology.layer_split(), &LayerSplit::Front);
        }
        assert_eq!(ranks(1, 1, 1), [Topology::single()]);
    }

    #[test]
    fn the_same_ranks_cut_tensors_and_share_out_experts() {
        let places = |tp, ep| -> Vec<[String; 3]> {
            let at = |t: &Topology| [t.tp(), t.ep(), t.expert_tp()].map(|at| at.to_string());
            ranks(tp, 1, ep).iter().map(at).collect()
        };
        assert_eq!(places(2, 2), [["0/2", "0/2", "0/1"], ["1/2", "1/2", "0/1"]]);
        let experts_cut = places(4, 2);
        assert_eq!(experts_cut[1], ["1/4", "0/2", "1/2"]);
        assert_eq!(experts_cut[2], ["2/4", "1/2", "0/2"]);
        let tensors_repeated = places(2, 4);
        assert_eq!(tensors_repeated[3], ["1/2", "3/4", "0/1"]);
    }

    #[test]
    fn numbers_that_do_not_go_together_are_refused() {
        for (tp, pp, ep) in [(4, 1, 6), (6, 1, 4), (0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 0)] {
            let error = Job { tp, pp, ep }.ranks().map(|_| ()).unwrap_err();
            assert!(matches!(error, PartitionError::UnevenJob { .. }), "{error}");
        }
        let job = Job { pp: 4, ..Job::default() };
        let rank = |rank, size| job.rank(Rank::new(rank, size).unwrap());
        assert_eq!(rank(3, 4).unwrap(), job.ranks().unwrap().nth(3).unwrap());
        let error = rank(3, 8).unwrap_err().to_string();
        assert_eq!(error, "tp, pp and ep make 4 ranks, and there are 8");
        assert!(Job { tp: usize::MAX, pp: 2, ep: 1 }.rank(Rank::ONLY).is_err());
    }
}
