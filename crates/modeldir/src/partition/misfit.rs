//! Why a tensor cannot be cut as a rule says, and the numbers of ranks that work.

use std::ops::Range;

use tensorfile::{Dtype, Quoted};

use super::tp::Axis;
use super::words::{OwnRule, Stored, Units, Works, sizes_that_do};

/// Why an axis cannot be cut as a rule says.
///
/// A field `works` lists numbers of ranks over which the same cut works.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// Heads stay whole, and the number of ranks does not divide their number.
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
    /// The length of the axis, or of a part of it, does not divide evenly.
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
    /// The axis does not divide into parts of these proportions.
    #[error("{len} elements along {axis} do not divide in proportions of {parts:?}")]
    Proportions {
        /// The axis.
        axis: Axis,
        /// Elements along the axis.
        len: usize,
        /// The proportions of the parts.
        parts: Box<[usize]>,
    },
    /// The axis, or a part of it, does not divide into this number of heads.
    #[error("{len} elements along {axis} are not {heads} heads")]
    HeadWidth {
        /// The axis.
        axis: Axis,
        /// Elements along the axis.
        len: usize,
        /// Number of heads.
        heads: usize,
    },
    /// Query heads do not divide evenly among the key and value heads.
    #[error("{heads} query heads do not divide into {kv} groups, one for each key and value head")]
    HeadGroups {
        /// Number of query heads.
        heads: usize,
        /// Number of key and value heads.
        kv: usize,
    },
    /// The tensor on disk cannot be cut along this axis, for any number of ranks.
    #[error("cannot be cut along {axis}: {reason}")]
    Uncuttable {
        /// The axis.
        axis: Axis,
        /// The reason.
        reason: &'static str,
    },
    /// The tensor belongs to a weight of a quantization method whose weights are not cut.
    #[error("{method} weights are not cut: {reason}; {}", OwnRule(pattern))]
    Method {
        /// The method.
        method: &'static str,
        /// The reason.
        reason: &'static str,
        /// A pattern of this tensor and its like, for a rule that says where to cut it.
        pattern: Box<str>,
    },
    /// The rule [expects](super::Rule::expect) a known layout, and no layout has this leaf with this
    /// dtype, or none is of the quantization method.
    #[error(
        "{} is of no known layout; {}", Stored { leaf, dtype, method: method.as_deref() }, OwnRule(pattern)
    )]
    UnknownLayout {
        /// The last part of the name.
        leaf: Box<str>,
        /// The dtype.
        dtype: Dtype,
        /// The quantization method that the configuration names.
        method: Option<Box<str>>,
        /// A pattern of this tensor and its like, for a rule that says where to cut it.
        pattern: Box<str>,
    },
    /// The rule needs a number that the configuration does not state.
    #[error("it needs {field}, and the configuration says none above 0")]
    NoNumber {
        /// The field of the configuration.
        field: Box<str>,
    },
    /// The stored shape contradicts a number of the configuration.
    #[error("{len} elements along {axis}, and the configuration says {stated}")]
    Length {
        /// The axis.
        axis: Axis,
        /// Elements along the axis, as stored.
        len: usize,
        /// Elements along the axis, by the configuration.
        stated: usize,
    },
    /// The stored number of experts contradicts the configuration.
    #[error("{count} experts, and the configuration says {stated}")]
    Experts {
        /// Experts in the tensor.
        count: usize,
        /// Experts by the configuration.
        stated: usize,
    },
    /// The projections of one module have heads of different widths, so that a number of heads is
    /// wrong.
    #[error("{heads} heads of {width} elements, where {} has heads of {other}", Quoted(tensor))]
    UnequalHeads {
        /// Number of heads.
        heads: usize,
        /// Elements of a head.
        width: usize,
        /// Another tensor of the module.
        tensor: Box<str>,
        /// Elements of its heads.
        other: usize,
    },
    /// Experts lie along the dimension that would be cut.
    #[error("dimension {dim} would be cut, and experts lie along it")]
    ExpertsThere {
        /// The dimension.
        dim: usize,
    },
}

impl Misfit {
    /// The same with the numbers of ranks that work, for variants that list them.
    pub(super) fn with_sizes_that_do(mut self, works_over: impl Fn(usize) -> bool) -> Self {
        if let Self::Heads { works, .. } | Self::Uneven { works, .. } | Self::Block { works, .. } =
            &mut self
        {
            *works = sizes_that_do(works_over);
        }
        self
    }
}
