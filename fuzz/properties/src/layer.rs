//! A quantized layer: its tensors, and the elements from which each weight is computed, as the published
//! definitions of the layouts say.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use modeldir::Dtype;
use serde_json::{Value, json};

/// A layer in one layout.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    kind: Kind,
    bits: usize,
    /// Inputs that share a scale; outputs as well in blocks.
    pub(crate) block: usize,
    pub(crate) outputs: usize,
    pub(crate) inputs: usize,
}

/// A layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    /// `AutoGPTQ`, `qlinear_cuda_old.py`; with `order`, `g_idx` is in no order.
    Gptq {
        order: bool,
    },
    /// `AutoAWQ`, `WQLinear_GEMM`.
    Awq,
    /// mlx, `affine_quantize`: rows are streams of bits.
    Mlx,
    /// DeepSeek-V3, `weight_dequant`.
    Fp8,
    /// compressed-tensors, `pack_to_int32`.
    Pack {
        zeros: bool,
        order: bool,
    },
}

/// A tensor of a layer.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) name: &'static str,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
}

impl Leaf {
    /// The name on disk.
    pub(crate) fn path(&self) -> String {
        format!("m.{}", self.name)
    }
}

/// An element, and for packed numbers the first bit in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) leaf: &'static str,
    pub(crate) at: usize,
    bit: usize,
}

/// Which of four bits of a word an AWQ output has.
const AWQ_ORDER: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

/// Bits of a word.
const WORD: usize = 32;

impl Layer {
    /// Makes a layer of which lengths fill whole words and groups, except for blocks, of which the
    /// last may be short.
    pub(crate) fn draft(input: &mut Unstructured<'_>) -> Result<Self> {
        let (zeros, order) = (input.arbitrary()?, input.arbitrary()?);
        let kinds = [
            Kind::Plain,
            Kind::Gptq { order },
            Kind::Awq,
            Kind::Mlx,
            Kind::Fp8,
            Kind::Pack { zeros, order },
        ];
        let kind = *input.choose(&kinds)?;
        let bits = match kind {
            Kind::Plain | Kind::Fp8 => 8,
            Kind::Awq => 4,
            Kind::Mlx => *input.choose(&[2, 3, 4, 5, 6, 8])?,
            Kind::Gptq { .. } | Kind::Pack { .. } => *input.choose(&[2, 4, 8])?,
        };
        let (outputs, block) = match kind {
            Kind::Plain => (input.int_in_range(1..=24)?, 1),
            Kind::Fp8 => (input.int_in_range(1..=24)?, input.int_in_range(2..=9)?),
            Kind::Mlx => (input.int_in_range(1..=8)?, 32),
            Kind::Awq => (8 * input.int_in_range(1..=5)?, input.int_in_range(2..=9)?),
            Kind::Gptq { .. } => {
                (WORD / bits * input.int_in_range(1..=3)?, WORD / bits * input.int_in_range(1..=2)?)
            }
            Kind::Pack { .. } => {
                (input.int_in_range(1..=24)?, WORD / bits * input.int_in_range(1..=2)?)
            }
        };
        let inputs = match kind {
            Kind::Plain | Kind::Fp8 => input.int_in_range(1..=24)?,
            _ => block * input.int_in_range(1..=6)?,
        };
        Ok(Self { kind, bits, block, outputs, inputs })
    }

    /// The configuration of a model of such layers.
    pub(crate) fn config(&self) -> Value {
        let Self { kind, bits, block, .. } = self;
        let described = match kind {
            Kind::Plain => return json!({}),
            Kind::Gptq { order } => {
                json!({"quant_method": "gptq", "bits": bits, "group_size": block, "desc_act": order})
            }
            Kind::Awq => json!({"quant_method": "awq", "bits": bits, "group_size": block}),
            Kind::Mlx => return json!({"quantization": {"bits": bits, "group_size": block}}),
            Kind::Fp8 => json!({"quant_method": "fp8", "weight_block_size": [block, block]}),
            Kind::Pack { zeros, .. } => {
                let weights = json!({"num_bits": bits, "type": "int", "strategy": "group",
                    "group_size": block, "symmetric": !zeros});
                json!({"quant_method": "compressed-tensors", "format": "pack-quantized",
                    "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}})
            }
        };
        json!({ "quantization_config": described })
    }

    /// The tensors.
    pub(crate) fn leaves(&self) -> Vec<Leaf> {
        let Self { kind, bits, block, outputs, inputs } = *self;
        let (per, groups) = (WORD / bits, inputs.div_ceil(block));
        let leaf = |name, dtype, shape: &[usize]| Leaf { name, dtype, shape: shape.to_vec() };
        match kind {
            Kind::Plain => vec![leaf("weight", Dtype::BF16, &[outputs, inputs])],
            Kind::Gptq { .. } => vec![
                leaf("qweight", Dtype::I32, &[inputs / per, outputs]),
                leaf("qzeros", Dtype::I32, &[groups, outputs / per]),
                leaf("scales", Dtype::F16, &[groups, outputs]),
                leaf("g_idx", Dtype::I32, &[inputs]),
            ],
            Kind::Awq => vec![
                leaf("qweight", Dtype::I32, &[inputs, outputs / per]),
                leaf("qzeros", Dtype::I32, &[groups, outputs / per]),
                leaf("scales", Dtype::F16, &[groups, outputs]),
            ],
            Kind::Mlx => vec![
                leaf("weight", Dtype::U32, &[outputs, inputs * bits / WORD]),
                leaf("scales", Dtype::BF16, &[outputs, groups]),
                leaf("biases", Dtype::BF16, &[outputs, groups]),
            ],
            Kind::Fp8 => vec![
                leaf("weight", Dtype::F8E4M3, &[outputs, inputs]),
                leaf("weight_scale_inv", Dtype::F32, &[outputs.div_ceil(block), groups]),
            ],
            Kind::Pack { zeros, order } => {
                let mut leaves = vec![
                    leaf("weight_packed", Dtype::I32, &[outputs, inputs / per]),
                    leaf("weight_scale", Dtype::BF16, &[outputs, groups]),
                    leaf("weight_shape", Dtype::I64, &[2]),
                ];
                let zero_point = [outputs.div_ceil(per), groups];
                leaves.extend(zeros.then(|| leaf("weight_zero_point", Dtype::I32, &zero_point)));
                leaves.extend(order.then(|| leaf("weight_g_idx", Dtype::I32, &[inputs])));
                leaves
            }
        }
    }

    /// The elements from which a weight is computed, in an order of their own.
    pub(crate) fn reads(
        &self,
        held: &Held,
        row: usize,
        column: usize,
    ) -> Result<Vec<Read>, String> {
        let Self { kind, bits, block, .. } = *self;
        let group = column / block;
        match kind {
            Kind::Plain => Ok(vec![held.at("weight", &[row, column])?]),
            Kind::Gptq { order } => {
                let (mut reads, group) = self.group(held, "g_idx", column, order)?;
                reads.extend(held.packed("qweight", bits, column, |at| [at, row])?);
                reads.extend(held.packed("qzeros", bits, row, |at| [group, at])?);
                reads.push(held.at("scales", &[group, row])?);
                Ok(reads)
            }
            Kind::Awq => {
                let packed = row / 8 * 8 + AWQ_ORDER.get(row % 8).copied().unwrap_or(0);
                let mut reads = held.packed("qweight", bits, packed, |at| [column, at])?;
                reads.extend(held.packed("qzeros", bits, packed, |at| [group, at])?);
                reads.push(held.at("scales", &[group, row])?);
                Ok(reads)
            }
            Kind::Mlx => {
                let mut reads = held.packed("weight", bits, column, |at| [row, at])?;
                reads.push(held.at("scales", &[row, group])?);
                reads.push(held.at("biases", &[row, group])?);
                Ok(reads)
            }
            Kind::Fp8 => Ok(vec![
                held.at("weight", &[row, column])?,
                held.at("weight_scale_inv", &[row / block, group])?,
            ]),
            Kind::Pack { zeros, order } => {
                let (mut reads, group) = self.group(held, "weight_g_idx", column, order)?;
                reads.extend(held.packed("weight_packed", bits, column, |at| [row, at])?);
                reads.push(held.at("weight_scale", &[row, group])?);
                reads.push(held.at("weight_shape", &[1])?);
                if zeros {
                    reads.extend(held.packed("weight_zero_point", bits, row, |at| [at, group])?);
                }
                Ok(reads)
            }
        }
    }

    /// The group of an input, and the element that says so if inputs are in no order.
    fn group(
        &self,
        held: &Held,
        leaf: &'static str,
        column: usize,
        order: bool,
    ) -> Result<(Vec<Read>, usize), String> {
        if !order {
            return Ok((Vec::new(), column / self.block));
        }
        let read = held.at(leaf, &[column])?;
        // Any mapping would do, for only positions are compared.
        let group = (read.at * 5 + 1) % self.inputs.div_ceil(self.block);
        Ok((vec![read], group))
    }
}

/// The tensors of a layer or of a part, as the elements of the whole that they hold.
pub(crate) struct Held(BTreeMap<&'static str, (Vec<usize>, Vec<usize>)>);

impl Held {
    /// Takes the shape and the elements of each tensor.
    pub(crate) fn new(
        leaves: &[Leaf],
        of: impl Fn(&Leaf) -> Result<(Vec<usize>, Vec<usize>), String>,
    ) -> Result<Self, String> {
        leaves.iter().map(|leaf| Ok((leaf.name, of(leaf)?))).collect::<Result<_, _>>().map(Self)
    }

    /// Every element that is held.
    pub(crate) fn elements(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.0.iter().flat_map(|(leaf, (_, elements))| elements.iter().map(|at| (*leaf, *at)))
    }

    /// The element at a position.
    fn at(&self, leaf: &'static str, position: &[usize]) -> Result<Read, String> {
        let (shape, elements) = self.0.get(leaf).ok_or_else(|| format!("no {leaf}"))?;
        let is_within = position.iter().zip(shape).all(|(at, len)| at < len);
        let flat = position.iter().zip(shape).fold(0, |flat, (at, len)| flat * len + at);
        let at = elements.get(flat).filter(|_| is_within && position.len() == shape.len());
        let lost = || format!("{leaf}: {position:?} of {shape:?}");
        Ok(Read { leaf, at: *at.ok_or_else(lost)?, bit: 0 })
    }

    /// The words that hold a packed number, of which the first says where it begins.
    fn packed<const N: usize>(
        &self,
        leaf: &'static str,
        bits: usize,
        number: usize,
        position: impl Fn(usize) -> [usize; N],
    ) -> Result<Vec<Read>, String> {
        let (first, last) = (number * bits, number * bits + bits - 1);
        let read = self.at(leaf, &position(first / WORD))?;
        Ok(vec![Read { bit: first % WORD, ..read }, self.at(leaf, &position(last / WORD))?])
    }
}
