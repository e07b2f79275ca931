//! Where the axes of a layer lie in the tensors that a quantization makes of its weight.

mod scheme;

use std::num::NonZeroUsize;

use super::layout::Layout;
use super::siblings::{Siblings, TensorShape};
use scheme::blocks;

pub(super) use scheme::Scheme;

/// Leaves that hold one number, or the same for every rank.
const NEVER_CUT: [&str; 10] = [
    "weight_shape",
    "weight_scale_2",
    "weight_global_scale",
    "weight_format",
    "input_scale",
    "input_global_scale",
    "output_scale",
    "q_scale",
    "k_scale",
    "v_scale",
];

/// Leaves of bitsandbytes, which flattens a weight before it cuts blocks.
const FLATTENED: [&str; 4] = ["absmax", "quant_map", "nested_absmax", "nested_quant_map"];

const IS_FLATTENED: &str = "bitsandbytes stores it flattened, in blocks that cross rows";
const NO_WEIGHT: &str = "its packed weight is not in the same directory";
const ONE: NonZeroUsize = NonZeroUsize::MIN;

/// An axis of a layer in one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnDisk {
    pub(super) dim: usize,
    /// Elements along the axis for one on disk.
    pub(super) per: NonZeroUsize,
    /// Elements along the axis.
    pub(super) len: usize,
}

impl OnDisk {
    /// A dimension that has an element on disk for each along the axis, if there is one.
    pub(super) fn plain(tensor: &TensorShape<'_>, dim: usize) -> Option<Self> {
        Self::along(tensor, dim, ONE)
    }

    /// A dimension that has one element on disk for `per` along the axis, if there is one.
    fn along(tensor: &TensorShape<'_>, dim: usize, per: NonZeroUsize) -> Option<Self> {
        let len = tensor.shape.get(dim)?.saturating_mul(per.get());
        Some(Self { dim, per, len })
    }
}

/// Where an axis is; none if the tensor has no such axis; or why it cannot be cut.
pub(super) type Located = Result<Option<OnDisk>, &'static str>;

/// The axes by which rules cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Out,
    In,
}

/// Finds axes in the tensors of a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Locator<'a> {
    pub(super) siblings: Siblings<'a>,
    pub(super) scheme: &'a Scheme,
    pub(super) layout: Layout,
}

impl<'a> Locator<'a> {
    /// Where an axis lies in the tensor at this position.
    pub(super) fn axis(&self, position: usize, side: Side) -> Located {
        let Some(tensor) = self.siblings.get(position) else { return Ok(None) };
        if let Layout::Axes(axes) = self.layout {
            let along = if side == Side::Out { axes.out } else { axes.inputs };
            return Ok(along.and_then(|along| OnDisk::along(&tensor, along.dim, along.per)));
        }
        let leaf = tensor.leaf();
        // One number is of no axis, unless it is of a layer that has one output.
        let is_of_layer = leaf == "weight" || leaf.ends_with("bias");
        if tensor.shape.iter().all(|len| *len == 1) && !is_of_layer {
            return Ok(None);
        }
        match leaf {
            leaf if NEVER_CUT.contains(&leaf) => Ok(None),
            leaf if FLATTENED.contains(&leaf) => Err(IS_FLATTENED),
            "qweight" | "qzeros" | "g_idx" => self.words(position, tensor, side),
            "scales" if self.siblings.find(position, "qweight").is_some() => {
                self.words(position, tensor, side)
            }
            "scales" | "biases" => self.companion(position, tensor, "weight", side),
            "weight_g_idx" => {
                Ok(OnDisk::plain(&tensor, tensor.rank() - 1).filter(|_| side == Side::In))
            }
            "weight_zero_point" => self.zero_point(position, tensor, side),
            leaf if leaf.ends_with("_blocks") && tensor.rank() > 2 => {
                Ok(mxfp4(&tensor, tensor.rank() - 3, side))
            }
            leaf if leaf.ends_with("_scales") && tensor.rank() > 1 => {
                Ok(mxfp4(&tensor, tensor.rank() - 2, side))
            }
            leaf if leaf.ends_with("bias") => {
                let last = tensor.rank().saturating_sub(1);
                Ok(OnDisk::plain(&tensor, last).filter(|_| side == Side::Out))
            }
            leaf => match leaf.strip_suffix("_scale_inv").or_else(|| leaf.strip_suffix("_scale")) {
                Some(base) => self.companion(position, tensor, base, side),
                None => self.weight(position, tensor, side),
            },
        }
    }

    /// The dimension along which experts lie.
    pub(super) fn experts(&self, position: usize) -> Option<usize> {
        let tensor = self.siblings.get(position)?;
        if let Layout::Axes(axes) = self.layout {
            return axes.expert.filter(|dim| *dim < tensor.rank());
        }
        let leaf = tensor.leaf();
        let matrix = if leaf.ends_with("bias") { 1 } else { 2 };
        let base = leaf.strip_suffix("_scale_inv").or_else(|| leaf.strip_suffix("_scale"));
        let stacked = match base {
            // Scales have fewer dimensions than their weight, or as many.
            Some(base) => {
                let weight = self.base(position, base);
                weight.is_some_and(|weight| {
                    weight.rank() > 2 && tensor.shape.first() == weight.shape.first()
                })
            }
            None if NEVER_CUT.contains(&leaf) => tensor.shape.first().is_some_and(|len| *len > 1),
            None => tensor.rank() > matrix,
        };
        stacked.then_some(0)
    }

    /// The dimensions of outputs and inputs of a weight, those of experts or a kernel left out.
    fn weight_dim(&self, rank: usize, side: Side) -> Option<usize> {
        let (out, inputs) = match (rank, self.layout) {
            (0, _) => return None,
            (1, _) => return (side == Side::Out).then_some(0),
            (2, Layout::Transposed) => (1, 0),
            (3, Layout::Transposed) => (2, 1),
            (3, _) => (1, 2),
            _ => (0, 1),
        };
        Some(if side == Side::Out { out } else { inputs })
    }

    /// An axis of a weight, some kinds of which have several elements in one along the last
    /// dimension.
    fn weight(&self, position: usize, tensor: TensorShape<'a>, side: Side) -> Located {
        let Some(dim) = self.weight_dim(tensor.rank(), side) else { return Ok(None) };
        let has = |leaf: &str| self.siblings.find(position, leaf).is_some();
        let bits = tensor.dtype.bits() as usize;
        let packed = match (tensor.leaf(), tensor.dtype, tensor.shape) {
            (leaf, tensorfile::Dtype::U8, [_, 1]) if has(&format!("{leaf}.absmax")) => {
                return Err(IS_FLATTENED);
            }
            _ if dim + 1 != tensor.rank() => None,
            ("weight_packed", ..) => Some(self.scheme.pack(bits)?),
            ("weight", tensorfile::Dtype::U8, _) if has("weight_scale_2") => NonZeroUsize::new(2),
            ("weight", tensorfile::Dtype::U32, _) if has("scales") => Some(self.scheme.pack(bits)?),
            _ => None,
        };
        Ok(OnDisk::along(&tensor, dim, packed.unwrap_or(ONE)))
    }

    /// The weight to which a scale belongs.
    fn base(&self, position: usize, base: &str) -> Option<TensorShape<'a>> {
        let plain = self.siblings.find(position, base);
        plain.or_else(|| self.siblings.find(position, &format!("{base}_packed")))
    }

    /// An axis of scales, by comparing their shape with that of their weight.
    fn companion(
        &self,
        position: usize,
        tensor: TensorShape<'a>,
        base: &str,
        side: Side,
    ) -> Located {
        let hints = [
            self.scheme.block[usize::from(side == Side::In)],
            self.group_hint(side),
            NonZeroUsize::new(128),
        ];
        let Some(weight) = self.base(position, base) else {
            let per = hints[0].or(hints[1]).ok_or(NO_WEIGHT)?;
            let dim = self.weight_dim(tensor.rank(), side);
            return Ok(dim.and_then(|dim| OnDisk::along(&tensor, dim, per)));
        };
        let Some(OnDisk { dim, len, .. }) = self.weight(position, weight, side)? else {
            return Ok(None);
        };
        if side == Side::In && self.siblings.find(position, "weight_g_idx").is_some() {
            return Ok(None);
        }
        if tensor.rank() == weight.rank() {
            return blocks(&tensor, dim, len, &hints);
        }
        // One for each output.
        if tensor.rank() + 1 == weight.rank() && side == Side::Out {
            return blocks(&tensor, tensor.rank() - 1, len, &hints);
        }
        Ok(None)
    }

    fn group_hint(&self, side: Side) -> Option<NonZeroUsize> {
        self.scheme.group_size.filter(|_| side == Side::In)
    }

    /// An axis of the zero points of a packed weight, which may be packed along the outputs.
    fn zero_point(&self, position: usize, tensor: TensorShape<'a>, side: Side) -> Located {
        let weight = self.base(position, "weight").ok_or(NO_WEIGHT)?;
        if side == Side::In || tensor.rank() != weight.rank() {
            return self.companion(position, tensor, "weight", side);
        }
        let Some(OnDisk { dim, len, .. }) = self.weight(position, weight, side)? else {
            return Ok(None);
        };
        if tensor.shape.get(dim) == Some(&len) {
            return Ok(OnDisk::along(&tensor, dim, ONE));
        }
        let pack = self.scheme.pack(tensor.dtype.bits() as usize)?;
        blocks(&tensor, dim, len, &[Some(pack), None, None])
    }

    /// An axis of GPTQ and AWQ tensors: matrices of inputs by outputs, packed in words.
    fn words(&self, position: usize, tensor: TensorShape<'a>, side: Side) -> Located {
        let find = |leaf| self.siblings.find(position, leaf);
        let weight = find("qweight").ok_or(NO_WEIGHT)?;
        let [.., rows, columns] = *weight.shape else { return Err(NO_WEIGHT) };
        let outputs = find("scales").and_then(|scales| scales.shape.last().copied());
        // Scales are not packed, so they show which axis of the weight is.
        let is_awq = outputs.map_or(self.scheme.is_awq, |outputs| outputs != columns);
        let pack = match (side, is_awq, tensor.leaf()) {
            (Side::Out, true, "qweight" | "qzeros") | (Side::Out, false, "qzeros") => {
                self.scheme.pack(32)?
            }
            (Side::In, false, _) => self.scheme.pack(32)?,
            _ => ONE,
        };
        let rank = tensor.rank();
        if tensor.leaf() == "g_idx" {
            return Ok(OnDisk::plain(&tensor, rank - 1).filter(|_| side == Side::In));
        }
        if rank != weight.rank() {
            return Err(NO_WEIGHT);
        }
        match (side, tensor.leaf()) {
            (Side::Out, "scales") => Ok(OnDisk::along(&tensor, rank - 1, ONE)),
            (Side::Out, _) => Ok(OnDisk::along(&tensor, rank - 1, pack)),
            (Side::In, "qweight") => Ok(OnDisk::along(&tensor, rank - 2, pack)),
            // Columns were reordered: which groups a run of them needs is not in the shapes.
            (Side::In, _) if self.scheme.desc_act => Ok(None),
            (Side::In, _) => {
                let len = rows.saturating_mul(pack.get());
                blocks(&tensor, rank - 2, len, &[self.scheme.group_size, None, None])
            }
        }
    }
}

/// Outputs, then inputs in blocks of 32, from dimension `first` on.
fn mxfp4(tensor: &TensorShape<'_>, first: usize, side: Side) -> Option<OnDisk> {
    match side {
        Side::Out => OnDisk::plain(tensor, first),
        Side::In => OnDisk::along(tensor, first + 1, NonZeroUsize::new(32)?),
    }
}
