//! Options for the number of ranks of a job.

use std::num::NonZeroUsize;

use clap::Args;
use modeldir::partition::{Job, PartitionError};
use modeldir::{Rank, Topology};

use super::number::parse_number;
use crate::failure::{Failure, Result};

/// The number of ranks of a job, by kind of parallelism.
///
/// The same ranks of a stage cut tensors and share out experts: their number is the larger of `tp`
/// and `ep`, and the smaller one divides it. Where `ep` is smaller, the ranks with the same experts
/// cut them. Where `tp` is smaller, several groups of ranks hold the tensors that are not experts.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct JobArgs {
    /// Ranks that cut tensors between them (tensor parallelism)
    #[arg(long, value_name = "N", value_parser = parse_number)]
    tp: Option<NonZeroUsize>,
    /// Stages that share out the layers (pipeline parallelism)
    #[arg(long, value_name = "N", value_parser = parse_number)]
    pp: Option<NonZeroUsize>,
    /// Ranks of a stage that share out the experts (expert parallelism)
    ///
    /// The same ranks as those of --tp: one number must divide the other.
    #[arg(long, value_name = "N", value_parser = parse_number)]
    ep: Option<NonZeroUsize>,
}

impl JobArgs {
    /// Whether any number is given.
    pub(crate) fn is_given(&self) -> bool {
        self.tp.or(self.pp).or(self.ep).is_some()
    }

    /// The same with this many tensor-parallel ranks if no number is given.
    #[must_use]
    pub(crate) fn or_tp(self, ranks: usize) -> Self {
        if self.is_given() { self } else { Self { tp: NonZeroUsize::new(ranks), ..self } }
    }

    /// This rank of the job.
    ///
    /// # Errors
    ///
    /// If the job has another number of ranks, and as [`ranks`](Self::ranks).
    pub(crate) fn rank(self, rank: Rank) -> Result<Topology> {
        self.job().rank(rank).map_err(|error| usage(&error))
    }

    /// Every rank of the job, in order.
    ///
    /// # Errors
    ///
    /// If neither of the numbers of ranks in a stage divides the other.
    pub(crate) fn ranks(self) -> Result<Vec<Topology>> {
        Ok(self.job().ranks().map_err(|error| usage(&error))?.collect())
    }

    fn job(self) -> Job {
        let [tp, pp, ep] = [self.tp, self.pp, self.ep].map(|n| n.map_or(1, NonZeroUsize::get));
        Job { tp, pp, ep }
    }
}

/// The numbers come from the command line.
fn usage(error: &PartitionError) -> Failure {
    Failure::Usage(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::JobArgs;
    use modeldir::partition::Job;
    use modeldir::{Rank, Topology};
    use std::num::NonZeroUsize;

    fn ranks(numbers: [usize; 3]) -> Vec<Topology> {
        let [tp, pp, ep] = numbers.map(NonZeroUsize::new);
        JobArgs { tp, pp, ep }.ranks().unwrap()
    }

    #[test]
    fn ranks_are_those_of_the_library() {
        let expected: Vec<_> = Job { tp: 4, pp: 2, ep: 2 }.ranks().unwrap().collect();
        assert_eq!(ranks([4, 2, 2]), expected);
        assert_eq!(ranks([0, 0, 0]), [Topology::single()]);
        let [tp, ep] = [NonZeroUsize::new(4), NonZeroUsize::new(6)];
        assert!(JobArgs { tp, pp: None, ep }.ranks().is_err());
    }

    #[test]
    fn tensors_are_cut_if_nothing_else_is_said() {
        assert_eq!(JobArgs::default().or_tp(4).ranks().unwrap(), ranks([4, 0, 0]));
        let staged = JobArgs { pp: NonZeroUsize::new(4), ..JobArgs::default() };
        assert_eq!(staged.or_tp(4).ranks().unwrap(), ranks([0, 4, 0]));
        let staged = staged.or_tp(4);
        assert_eq!(staged.rank(Rank::new(3, 4).unwrap()).unwrap(), ranks([0, 4, 0])[3]);
        assert!(staged.rank(Rank::new(3, 8).unwrap()).is_err());
    }
}
