//! The part of a model for each rank: rules, and how they select parts of tensors; pure.
//!
//! A [`Partition`] is a list of [`Rule`]s and their options. A [`Topology`] is the place of one
//! rank in a job. [`ModelDir::plan_for`](crate::ModelDir::plan_for) applies both to a model and
//! returns the plan of that rank; [`Partition::cut`] applies them to names, dtypes and shapes
//! alone. Rules come from [`ModelDir::partition`](crate::ModelDir::partition) (built in), from a
//! JSON file ([`Partition::from_file`]), or from code.
//!
//! A rule cuts the outputs or the inputs of a layer. Where these lie in a stored tensor is known for
//! the layouts below, by the file of `partition/layouts` in the last column. A tensor of any other
//! layout is refused under a built-in rule, with its leaf, dtype and method; a
//! [`Rule`] of the caller may say where to cut it.
//!
//! | layout | cut | by |
//! | --- | --- | --- |
//! | floats of any width, with biases; `Conv1D`; stacked experts | yes | `plain` |
//! | GPTQ: words of 32 or 64 bits, 2, 4 or 8 bits, with and without `desc_act` | yes | `gptq` |
//! | GPTQ with 3 bits | along outputs, unless zero points are packed | `gptq` |
//! | AWQ `gemm` | yes | `awq` |
//! | AWQ `gemv` | yes, along inputs at words of zero points | `awq_gemv` |
//! | compressed-tensors: packed, float and integer | yes | `compressed_tensors`, `fp8` |
//! | 8-bit floats or integers with scales by block, output or tensor | yes | `fp8` |
//! | NVFP4 | yes | `nvfp4`, `compressed_tensors` |
//! | MXFP4 | yes | `mxfp4` |
//! | MLX, 2 to 8 bits, and its MXFP4, MXFP8 and NVFP4 | yes, along inputs at groups | `mlx` |
//! | bitsandbytes, 8 bits | yes | `bitsandbytes` |
//! | bitsandbytes, 4 bits, in any dtype | no: blocks cross rows | `bitsandbytes` |
//! | AQLM, BitBLAS, BitNet, `comfy_quant`, EETQ, EXL2, EXL3, FP-Quant, HIGGS, HQQ, Marlin, `ModelOpt` INT4, QQQ, QTIP, Quanto, QuIP#, SINQ, sparse weights of compressed-tensors, SpQR, SqueezeLLM, SVDQuant, torchao, VPTQ | no | `refused` |
//! | all others | no, unless a rule of the caller says where | none |

// Each file is covered; the few with bounded sums say what bounds them.
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod balance;
mod companion;
mod cut;
mod cutter;
mod error;
mod expect;
mod for_config;
mod from_hf;
mod interval;
mod job;
mod kinds;
mod layout;
mod layouts;
mod line;
mod locate;
mod matcher;
mod misfit;
mod pattern;
mod placement;
mod portion;
mod quantized;
mod report;
mod rule;
mod rules;
mod siblings;
mod sizes;
mod stage;
mod tables;
mod target;
mod topology;
mod tp;
mod tp_forms;
mod weight_layout;
mod words;
mod wrappers;

#[cfg(test)]
mod tests;

pub(crate) use quantized::is_companion;

pub use cut::Cut;
pub use error::PartitionError;
pub use expect::Expected;
pub use job::Job;
pub use layout::{Along, Axes, Layout};
pub use misfit::Misfit;
pub use pattern::Pattern;
pub use placement::{ExpertSplit, LayerSplit};
pub use report::PartitionReport;
pub use rule::{Ep, Pp, Rule, Unused};
pub use rules::{ExtraLayers, Partition, Unmatched};
pub use siblings::TensorShape;
pub use topology::Topology;
pub use tp::{Axis, Heads, Misaligned, Part, Split, Tp, Uneven};
