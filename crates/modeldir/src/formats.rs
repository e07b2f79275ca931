//! Weights of formats that are not read, by the ends of their names.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::path::Path;

/// Extensions of weights in other formats, with the format.
const FORMATS: &[(&str, &str)] = &[
    ("bin", "PyTorch"),
    ("pt", "PyTorch"),
    ("pth", "PyTorch"),
    ("ckpt", "PyTorch or TensorFlow"),
    ("distcp", "PyTorch distributed checkpoint (DCP)"),
    ("pt2", "PyTorch (exported program)"),
    ("pte", "ExecuTorch"),
    ("h5", "Keras (HDF5)"),
    ("keras", "Keras"),
    ("pb", "TensorFlow"),
    ("tflite", "TensorFlow Lite"),
    ("litertlm", "LiteRT"),
    ("msgpack", "Flax (MessagePack)"),
    ("gguf", "llama.cpp (GGUF)"),
    ("ggml", "llama.cpp (GGML)"),
    ("llamafile", "llama.cpp (llamafile)"),
    ("uqff", "mistral.rs (UQFF)"),
    ("tensors", "CoreWeave Tensorizer"),
    ("pdparams", "PaddlePaddle"),
    ("pdiparams", "PaddlePaddle"),
    ("dduf", "Diffusers (DDUF)"),
    ("nemo", "NVIDIA NeMo"),
    ("engine", "TensorRT"),
    ("onnx", "ONNX"),
    ("onnx_data", "ONNX"),
    ("ort", "ONNX Runtime"),
    ("mnn", "MNN"),
    ("mlmodel", "Core ML"),
    ("npz", "NumPy"),
    ("npy", "NumPy"),
    ("pkl", "Python (pickle)"),
    ("ot", "tch (OT)"),
    ("mpk", "Burn (MessagePack)"),
    ("bpk", "Burn"),
];

/// The format of weights by name, in capitals or not, if it is not safetensors.
pub(crate) fn format_of(name: &Path) -> Option<&'static str> {
    let extension = name.extension()?;
    let named = FORMATS.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known));
    let of_tensorflow = || {
        let text = extension.to_string_lossy();
        text.starts_with("data-") && text.contains("-of-")
    };
    named.map(|(_, format)| *format).or_else(|| of_tensorflow().then_some("TensorFlow"))
}

#[cfg(test)]
mod tests {
    use super::format_of;
    use std::path::Path;

    #[test]
    fn formats_are_told_by_the_end_of_the_name_in_any_case() {
        for (name, format) in [
            ("pytorch_model.bin", Some("PyTorch")),
            ("MODEL.BIN", Some("PyTorch")),
            ("model.GGUF", Some("llama.cpp (GGUF)")),
            ("model-q4k.uqff", Some("mistral.rs (UQFF)")),
            ("__0_0.distcp", Some("PyTorch distributed checkpoint (DCP)")),
            ("model.tensors", Some("CoreWeave Tensorizer")),
            ("model_state.pdparams", Some("PaddlePaddle")),
            ("model.dduf", Some("Diffusers (DDUF)")),
            ("model.ckpt.data-00000-of-00001", Some("TensorFlow")),
            ("model.safetensors", None),
            ("config.json", None),
            ("bin", None),
        ] {
            assert_eq!(format_of(Path::new(name)), format, "{name}");
        }
    }
}
