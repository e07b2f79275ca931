//! Why a tensor cannot be cut as a rule says, and over how many ranks it could be.

use std::ops::Range;

use super::tp::Axis;
use super::words::{Units, Works, sizes_that_do};

/// Why an axis cannot be cut as a rule says.
///
/// Where a field `works` is, it lists numbers of ranks over which the same cut works.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// Heads stay whole, and the ranks do not divide them.
    #[error(
        "{heads} heads over {ranks} ranks{}; Uneven::Balanced gives some ranks more heads than \
         others, Uneven::Chunk cuts heads",
        Works(works)
    )]
    Heads {
        /// Number of heads.
        heads: usize,
        /// Number of ranks.
        ranks: usize,
        /// Numbers of ranks that work.
        works: Box<[usize]>,
    },
    /// The length of the axis, or of a part of it, cannot be shared evenly.
    #[error(
        "{len} elements along {axis}{} over {ranks} ranks{}; Uneven::Balanced and Uneven::Chunk \
         give some ranks more than others",
        Units(*unit), Works(works)
    )]
    Uneven {
        /// The axis.
        axis: Axis,
        /// Elements along the axis.
        len: usize,
        /// Elements that stay together.
        unit: usize,
        /// Number of ranks.
        ranks: usize,
        /// Numbers of ranks that work.
        works: Box<[usize]>,
    },
    /// A cut falls within a block of a quantized tensor.
    #[error(
        "elements {}..{} along {axis} over {ranks} ranks cut blocks of {block}{}; \
         Misaligned::Cover takes blocks whole",
        cut.start, cut.end, Works(works)
    )]
    Block {
        /// The axis.
        axis: Axis,
        /// The elements that a rank would take.
        cut: Range<usize>,
        /// Elements of a block.
        block: usize,
        /// Number of ranks.
        ranks: usize,
        /// Numbers of ranks that work.
        works: Box<[usize]>,
    },
    /// The axis is not made of parts of these proportions.
    #[error("{len} elements along {axis} do not divide in proportions of {parts:?}")]
    Proportions {
        /// The axis.
        axis: Axis,
        /// Elements along the axis.
        len: usize,
        /// The proportions of the parts.
        parts: Box<[usize]>,
    },
    /// The axis, or a part of it, does not hold this number of heads.
    #[error("{len} elements along {axis} are not {heads} heads")]
    HeadWidth {
        /// The axis.
        axis: Axis,
        /// Elements along the axis.
        len: usize,
        /// Number of heads.
        heads: usize,
    },
    /// Query heads do not come in groups of one size, a group for each key and value head.
    #[error("{heads} query heads do not divide into {kv} groups, one for each key and value head")]
    HeadGroups {
        /// Number of query heads.
        heads: usize,
        /// Number of key and value heads.
        kv: usize,
    },
    /// What lies on disk is not cut along this axis, whatever the number of ranks.
    #[error("cannot be cut along {axis}: {reason}")]
    Uncuttable {
        /// The axis.
        axis: Axis,
        /// Why not.
        reason: &'static str,
    },
    /// Experts lie along the dimension that would be cut.
    #[error("dimension {dim} would be cut, and experts lie along it")]
    ExpertsThere {
        /// The dimension.
        dim: usize,
    },
}

impl Misfit {
    /// The same with the numbers of ranks over which it works, if it says them.
    pub(super) fn with_sizes_that_do(mut self, works_over: impl Fn(usize) -> bool) -> Self {
        if let Self::Heads { works, .. } | Self::Uneven { works, .. } | Self::Block { works, .. } =
            &mut self
        {
            *works = sizes_that_do(works_over);
        }
        self
    }
}
