//! The interface of weight layouts, and the view of a tensor that they get.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::cell::OnceCell;
use std::fmt::Debug;
use std::num::NonZeroUsize;

use super::layout::Layout;
use super::siblings::{Siblings, TensorShape};
use crate::Quantization;

/// How one kind of weight and its companions lie on disk.
///
/// A tensor has the first layout that owns it. The other methods are called only for tensors that
/// the layout owns.
pub(super) trait WeightLayout: Debug + Sync {
    /// The quantization methods that store weights in this layout; none if it is not a quantized
    /// one.
    fn methods(&self) -> &'static [&'static str];

    /// Whether a configuration names a method that stores weights in this layout.
    fn is_listed_by(&self, quantization: &Quantization) -> bool {
        quantization.method().is_some_and(|method| self.methods().contains(&method))
    }

    /// Whether a configuration says that weights are in this layout.
    fn is_named_by(&self, quantization: &Quantization) -> bool {
        self.is_listed_by(quantization)
    }

    /// The number of inputs that share a scale, if the format fixes it.
    fn block(&self) -> Option<usize> {
        None
    }

    /// Whether a tensor is in this layout, by its leaf, dtype, shape and siblings.
    fn owns(&self, tensor: &Member<'_>) -> bool;

    /// The place of an axis of the layer in a tensor of more than one number.
    fn axis(&self, tensor: &Member<'_>, side: Side) -> Located;

    /// The dimension of the experts, before both axes.
    fn experts(&self, tensor: &Member<'_>) -> Option<usize> {
        (tensor.rank() > 2).then_some(0)
    }
}

/// A tensor with the others of its module.
#[derive(Clone, Debug)]
pub(super) struct Member<'a> {
    pub(super) tensor: TensorShape<'a>,
    /// The last part of its name, found once.
    pub(super) leaf: &'a str,
    /// The position of a tensor of the module among all tensors.
    pub(super) position: usize,
    pub(super) siblings: Siblings<'a>,
    pub(super) quantization: Option<&'a Quantization>,
    /// The order of axes from the rules.
    pub(super) order: Layout,
    /// Who wrote the rule that cuts it.
    pub(super) source: Source,
    /// The layout of the tensor, or why it has none; found once.
    pub(super) layout: OnceCell<Result<&'static dyn WeightLayout, Obstacle>>,
}

/// Who wrote the rule that cuts a tensor, which decides about tensors that no layout knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A rule that [expects](super::Rule::expect) a known layout, as the built-in ones do.
    Expecting,
    /// A rule of the caller's for modules, whatever they hold.
    Caller,
    /// A rule of the caller's that names the leaf.
    CallersLeaf,
}

impl<'a> Member<'a> {
    pub(super) const fn rank(&self) -> usize {
        self.tensor.rank()
    }

    /// Whether the module has a tensor of this leaf.
    pub(super) fn has(&self, leaf: &str) -> bool {
        self.shape_of(leaf).is_some()
    }

    /// The shape of the tensor with this leaf in the same module.
    pub(super) fn shape_of(&self, leaf: &str) -> Option<&'a [usize]> {
        let is_self = leaf == self.leaf;
        let tensor = if is_self { self.tensor } else { self.siblings.find(self.position, leaf)? };
        Some(tensor.shape)
    }

    /// The tensor with this leaf in the same module.
    pub(super) fn sibling(&self, leaf: &str) -> Option<Self> {
        if leaf == self.leaf {
            return Some(self.clone());
        }
        let tensor = self.siblings.find(self.position, leaf)?;
        Some(Self { tensor, leaf: tensor.leaf(), layout: OnceCell::new(), ..*self })
    }

    /// A dimension with one element on disk for each along the axis, if the dimension exists.
    pub(super) fn plain(&self, dim: usize) -> Option<OnDisk> {
        self.along(dim, NonZeroUsize::MIN)
    }

    /// A dimension with an element on disk for `per` along the axis, if there is such a dimension.
    pub(super) fn along(&self, dim: usize, per: NonZeroUsize) -> Option<OnDisk> {
        OnDisk::along(&self.tensor, dim, per)
    }

    /// The dimension `skipped` before the last, if there is one.
    pub(super) const fn dim_from_end(&self, skipped: usize) -> Option<usize> {
        match self.rank().checked_sub(skipped) {
            Some(rank) => rank.checked_sub(1),
            None => None,
        }
    }
}

/// The axes along which rules cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Out,
    In,
}

/// The place of a layer's axis in one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnDisk {
    pub(super) dim: usize,
    /// Elements along the axis in one block.
    pub(super) per: NonZeroUsize,
    /// Elements on disk of one block.
    pub(super) stored: NonZeroUsize,
    /// Elements along the axis.
    pub(super) len: usize,
}

impl OnDisk {
    /// A dimension with an element on disk for `per` along the axis, if there is such a dimension.
    pub(super) fn along(tensor: &TensorShape<'_>, dim: usize, per: NonZeroUsize) -> Option<Self> {
        let len = tensor.shape.get(dim)?.saturating_mul(per.get());
        Some(Self { dim, per, stored: NonZeroUsize::MIN, len })
    }
}

/// The place of an axis, `None` if the tensor does not have it, or why it cannot be cut.
pub(super) type Located = Result<Option<OnDisk>, Obstacle>;

/// Why an axis of a tensor cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// No cut along this axis is possible. The whole tensor covers every part.
    Uncuttable(&'static str),
    /// The tensor belongs to a weight of a method whose weights are not cut.
    Method(&'static Method),
    /// No layout knows the tensor.
    Unknown,
}

impl From<&'static str> for Obstacle {
    fn from(reason: &'static str) -> Self {
        Self::Uncuttable(reason)
    }
}

/// A method whose quantized weights are not cut.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Method {
    /// The name that its authors use.
    pub(super) name: &'static str,
    /// Its names in configurations, in lower case and with `_` between words.
    pub(super) methods: &'static [&'static str],
    /// Sets of leaves, each of which no other method stores in one module; rare ones first.
    pub(super) leaves: &'static [&'static [&'static str]],
    pub(super) reason: &'static str,
}
