//! How a tensor is divided among the ranks of a tensor-parallel group.

use std::fmt;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

/// How a tensor is divided among the ranks of a tensor-parallel group.
///
/// In JSON the common cases are short:
///
/// | JSON | means |
/// | --- | --- |
/// | `"replicate"` | every rank holds all of it |
/// | `"skip"` | no rank holds it |
/// | `"first"` | rank 0 holds all of it, the others nothing: a bias that is added once |
/// | `"col"` | cut along the outputs |
/// | `"row"` | cut along the inputs |
/// | `"vocab"` | cut along the outputs, the last ranks get less (`chunk`) |
/// | `{"heads": q}` | cut along the outputs into whole heads |
/// | `{"heads": [q, kv]}` | the same for `q` query heads that share `kv` key and value heads |
/// | `{"kv_heads": kv}` | the same for key and value heads; ranks beyond their number share them |
/// | `{"packed": [1, 1]}` | blocks of these proportions along the outputs, each cut by itself |
/// | `{"qkv": [q, kv]}` | a block of `q` heads, then two of `kv` heads, each cut by itself |
/// | `{"split": {…}}` | any [`Split`], by its fields |
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tp {
    /// Every rank holds all of it.
    Replicate,
    /// No rank holds it.
    Skip,
    /// Rank 0 holds all of it, the others nothing.
    First,
    /// Each rank holds a part.
    Split(Split),
}

/// A cut along one axis, into parts that are cut by themselves.
///
/// ```
/// use modeldir::partition::{Tp, Uneven};
/// use modeldir::Rank;
///
/// // Rows of 8 query heads, 2 key heads and 2 value heads, each 16 wide.
/// let Tp::Split(qkv) = serde_json::from_str(r#"{"qkv": [8, 2]}"#)? else { unreachable!() };
/// let ranges = qkv.ranges(192, Rank::new(1, 4)?, Uneven::Error).expect("8 heads over 4 ranks");
/// assert_eq!(ranges, [32..64, 128..144, 160..176]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// What is cut.
    pub axis: Axis,
    /// The blocks side by side along the axis, each cut by itself.
    #[serde(default = "one_part", skip_serializing_if = "is_one_part")]
    pub parts: Vec<Part>,
    /// Number of consecutive elements that must stay together: 3 times the width of a head if every
    /// head has its query, key and value rows together, 2 if gate and up alternate.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub unit: NonZeroUsize,
    /// If an even cut does not work, cuts are at multiples of this and of `unit`: the block of a
    /// quantization.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub align: NonZeroUsize,
    /// What to do with lengths that cannot be cut evenly, in place of [`Partition::uneven`](super::Partition::uneven).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uneven: Option<Uneven>,
    /// What to do with cuts within a block, in place of [`Partition::misaligned`](super::Partition::misaligned).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misaligned: Option<Misaligned>,
}

/// A block along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its length in proportion to the other parts, such as its length in elements.
    pub size: NonZeroUsize,
    /// Its heads, if they must stay whole.
    pub heads: Option<Heads>,
}

/// Heads that are divided among ranks without being cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Heads {
    /// Query heads, each on one rank, which share `kv` key and value heads. With
    /// [`Uneven::Balanced`] each goes to the rank of its key and value head.
    Query {
        /// The number of heads.
        count: NonZeroUsize,
        /// The number of key and value heads.
        kv: NonZeroUsize,
    },
    /// Key or value heads. If there are more ranks than heads, neighbouring ranks hold the same.
    KeyValue {
        /// The number of heads.
        count: NonZeroUsize,
    },
}

/// An axis of a weight, in any layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Axis {
    /// The outputs of the layer: rows of a linear layer as PyTorch stores it, and the bias.
    Out,
    /// The inputs of the layer: columns of a linear layer as PyTorch stores it.
    In,
    /// This dimension of the tensor on disk, counted from 0.
    Dim(usize),
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Out => f.write_str("the outputs"),
            Self::In => f.write_str("the inputs"),
            Self::Dim(dim) => write!(f, "dimension {dim}"),
        }
    }
}

/// What to do with a length that does not divide evenly among the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Uneven {
    /// Refuse, naming the numbers of ranks that would do.
    #[default]
    Error,
    /// As `torch.chunk`: each rank takes the length divided by the ranks, rounded up, and the last
    /// get less or nothing. Heads may be cut.
    Chunk,
    /// The first ranks take one unit or head more than the others.
    Balanced,
}

/// What to do with a cut that falls within a block of a quantized tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Misaligned {
    /// Refuse, naming the numbers of ranks that would do.
    #[default]
    Error,
    /// Take every touched block whole, so that both neighbouring ranks hold it.
    Cover,
}

impl Tp {
    /// Cut along the outputs.
    #[must_use]
    pub fn col() -> Self {
        Self::Split(Split::along(Axis::Out))
    }

    /// Cut along the inputs.
    #[must_use]
    pub fn row() -> Self {
        Self::Split(Split::along(Axis::In))
    }

    /// Cut along the outputs, the last ranks get less.
    #[must_use]
    pub fn vocab() -> Self {
        Self::Split(Split { uneven: Some(Uneven::Chunk), ..Split::along(Axis::Out) })
    }

    /// Cut along the outputs into whole query heads, which share `kv` key and value heads.
    #[must_use]
    pub fn heads(heads: NonZeroUsize, kv: NonZeroUsize) -> Self {
        Self::packed(vec![Part { size: NonZeroUsize::MIN, ..Part::query(heads, kv) }])
    }

    /// Cut along the outputs into whole key or value heads.
    #[must_use]
    pub fn kv_heads(kv: NonZeroUsize) -> Self {
        Self::packed(vec![Part { size: NonZeroUsize::MIN, ..Part::key_value(kv) }])
    }

    /// A block of `q` heads, then two of `kv` heads, side by side along the outputs.
    #[must_use]
    pub fn qkv(q: NonZeroUsize, kv: NonZeroUsize) -> Self {
        Self::packed(vec![Part::query(q, kv), Part::key_value(kv), Part::key_value(kv)])
    }

    /// Blocks side by side along the outputs, each cut by itself.
    #[must_use]
    pub fn packed(parts: Vec<Part>) -> Self {
        Self::Split(Split { parts, ..Split::along(Axis::Out) })
    }
}

impl Split {
    /// A cut of the whole axis.
    #[must_use]
    pub fn along(axis: Axis) -> Self {
        let (parts, one) = (one_part(), NonZeroUsize::MIN);
        Self { axis, parts, unit: one, align: one, uneven: None, misaligned: None }
    }
}

impl Part {
    /// A block without heads, of this length in proportion to the others.
    #[must_use]
    pub const fn new(size: NonZeroUsize) -> Self {
        Self { size, heads: None }
    }

    /// A block of `count` query heads, which share `kv` key and value heads.
    #[must_use]
    pub const fn query(count: NonZeroUsize, kv: NonZeroUsize) -> Self {
        Self { size: count, heads: Some(Heads::Query { count, kv }) }
    }

    /// A block of `count` key or value heads.
    #[must_use]
    pub const fn key_value(count: NonZeroUsize) -> Self {
        Self { size: count, heads: Some(Heads::KeyValue { count }) }
    }
}

fn one_part() -> Vec<Part> {
    vec![Part::new(NonZeroUsize::MIN)]
}

fn is_one_part(parts: &Vec<Part>) -> bool {
    *parts == one_part()
}

const fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields so")]
const fn is_one(number: &NonZeroUsize) -> bool {
    number.get() == 1
}
