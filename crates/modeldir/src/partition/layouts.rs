//! The layouts in which weights are stored, in order of priority.
//!
//! Each layout has a file with all its rules. A new layout is a new file, its `mod` line and a line
//! in the list. A macro could make one line of the two, but `cargo fmt` would then no longer find
//! the files.
//!
//! The documentation of `partition` has the table of what is cut.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod activations;
mod awq;
mod awq_gemv;
mod bitsandbytes;
mod compressed_tensors;
mod fp8;
mod gptq;
mod mlx;
mod mxfp4;
mod nvfp4;
pub(super) mod plain;
mod refused;

use std::num::NonZeroUsize;

use super::weight_layout::{Member, Obstacle, Source, WeightLayout};
use crate::Quantization;

/// Every layout. The first that owns a tensor decides about it, so layouts with wide patterns come
/// last.
const LAYOUTS: &[&dyn WeightLayout] = &[
    &bitsandbytes::Bitsandbytes,
    &awq_gemv::AwqGemv,
    &awq::Awq,
    &gptq::Gptq,
    &compressed_tensors::CompressedTensors,
    &nvfp4::Nvfp4,
    &mxfp4::Mxfp4,
    &mlx::Mlx,
    &activations::Activations,
    &fp8::Fp8,
    &plain::Plain,
];

/// The layout of a tensor, or why it has none.
pub(super) fn layout_of(tensor: &Member<'_>) -> Result<&'static dyn WeightLayout, Obstacle> {
    if tensor.source != Source::CallersLeaf || plain::is_of_layer(tensor.leaf) {
        if let Some(method) = refused::method_of(tensor) {
            return Err(Obstacle::Method(method));
        }
    }
    let Some(owner) = LAYOUTS.iter().copied().find(|layout| layout.owns(tensor)) else {
        return unowned(tensor);
    };
    // A method that no layout knows may use known leaves for something else.
    let is_quantized = !owner.methods().is_empty();
    if is_quantized && tensor.source == Source::Expecting && !knows_method(tensor.quantization) {
        return Err(named(tensor));
    }
    Ok(owner)
}

/// A tensor that no layout owns is as plain as the caller's rule says. A built-in rule knows
/// nothing about it.
fn unowned(tensor: &Member<'_>) -> Result<&'static dyn WeightLayout, Obstacle> {
    match tensor.source {
        Source::Expecting => Err(named(tensor)),
        Source::Caller | Source::CallersLeaf => Ok(&plain::Plain),
    }
}

/// Why a tensor has no layout: because of the method that the configuration names, or because
/// nothing about it is known.
fn named(tensor: &Member<'_>) -> Obstacle {
    let method = tensor.quantization.and_then(refused::configured);
    method.map_or(Obstacle::Unknown, Obstacle::Method)
}

/// Whether a layout lists the method of the configuration, if that names one.
fn knows_method(quantization: Option<&Quantization>) -> bool {
    let named = quantization.filter(|quantization| quantization.method().is_some());
    named.is_none_or(|named| LAYOUTS.iter().any(|layout| layout.is_listed_by(named)))
}

/// The number of weights in a row, or of rows, that share a scale: from the configuration, else
/// from the layout that it names.
pub(super) fn block_size(quantization: &Quantization) -> Option<NonZeroUsize> {
    let block = quantization.weight_block_size().iter().max().copied();
    let group = quantization.group_size().and_then(|size| usize::try_from(size).ok());
    let fixed = || {
        let named = LAYOUTS.iter().copied().filter(|layout| layout.is_named_by(quantization));
        named.filter_map(WeightLayout::block).next()
    };
    block.or(group).or_else(fixed).and_then(NonZeroUsize::new)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use serde_json::{Value, json};

    use super::{LAYOUTS, block_size};
    use crate::{ModelConfig, Quantization};

    #[test]
    fn blocks_are_as_long_as_the_configuration_or_the_format_says() {
        let cases: [(Value, Option<usize>); 6] = [
            (json!({"quant_method": "fp8", "weight_block_size": [64, 128]}), Some(128)),
            (json!({"quant_method": "awq", "bits": 4, "group_size": 32}), Some(32)),
            (json!({"quant_method": "mxfp4"}), Some(32)),
            (json!({"quant_method": "modelopt", "quant_algo": "NVFP4"}), Some(16)),
            (json!({"quant_method": "modelopt", "quant_algo": "FP8"}), None),
            (json!({"quant_method": "bitsandbytes"}), None),
        ];
        for (given, expected) in cases {
            let config = json!({ "quantization_config": given }).to_string();
            let config = ModelConfig::from_json("config.json", config.as_bytes()).unwrap();
            let quantization = Quantization::from_config(&config).unwrap();
            let found = block_size(&quantization).map(NonZeroUsize::get);
            assert_eq!(found, expected, "{given}");
        }
    }

    #[test]
    fn every_method_that_is_read_has_a_layout() {
        for method in
            ["awq", "bitsandbytes", "compressed-tensors", "fp8", "gptq", "mlx", "modelopt", "mxfp4"]
        {
            assert!(LAYOUTS.iter().any(|layout| layout.methods().contains(&method)), "{method}");
        }
    }
}
