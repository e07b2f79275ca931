//! Methods whose quantized weights are not cut, recognised by their leaves or by the
//! configuration.
//!
//! Codes, code books and permutations say nothing by their shapes about outputs and inputs, or the
//! same bytes hold elements that belong to different ranks.

use tensorfile::Dtype;

use crate::Quantization;
use crate::partition::weight_layout::{Member, Method};

const METHODS: &[Method] = &[
    AQLM,
    BITBLAS,
    BITNET,
    COMFY_QUANT,
    EETQ,
    EXL2,
    EXL3,
    FP_QUANT,
    GGUF,
    HIGGS,
    HQQ,
    MARLIN,
    MARLIN_24,
    MODELOPT_INT4,
    QQQ,
    QTIP,
    QUANTO,
    QUIP,
    SINQ,
    SPARSE,
    SPQR,
    SQUEEZE_LLM,
    SVD_QUANT,
    TORCHAO,
    VPTQ,
];

const AQLM: Method = Method {
    name: "AQLM",
    methods: &["aqlm"],
    leaves: &[&["codebooks"]],
    reason: "its codes stand for groups of weights in code books",
};

const BITBLAS: Method = Method {
    name: "BitBLAS",
    methods: &["bitblas"],
    leaves: &[&["zeros", "qweight"]],
    reason: "its bytes are in the order of a kernel",
};

const BITNET: Method = Method {
    name: "BitNet",
    methods: &["bitnet"],
    leaves: &[],
    reason: "a row of bytes holds four rows, a quarter of the outputs apart",
};

const COMFY_QUANT: Method = Method {
    name: "comfy_quant",
    methods: &["comfy_quant"],
    leaves: &[&["comfy_quant"]],
    reason: "the format of each layer is in the bytes of a tensor",
};

/// The shape is that of inputs and outputs; the bytes are not in that order.
const EETQ: Method = Method {
    name: "EETQ",
    methods: &["eetq"],
    leaves: &[],
    reason: "its bytes are in the order of a kernel, whatever the shape says",
};

const EXL2: Method = Method {
    name: "EXL2",
    methods: &["exl2"],
    leaves: &[&["q_weight"], &["q_invperm"], &["q_groups"]],
    reason: "its inputs are permuted, in groups of different bits",
};

const EXL3: Method = Method {
    name: "EXL3",
    methods: &["exl3"],
    leaves: &[&["suh"], &["svh"], &["su", "trellis"], &["sv", "trellis"]],
    reason: "its trellises encode tiles, after a transform across inputs and outputs",
};

const FP_QUANT: Method = Method {
    name: "FP-Quant",
    methods: &["fp_quant"],
    leaves: &[&["forward_hadamard_matrix"], &["backward_hadamard_matrix"], &["dqweight"]],
    reason: "its inputs are transformed in blocks",
};

const GGUF: Method = Method {
    name: "GGUF",
    methods: &["gguf"],
    leaves: &[&["qweight_type"]],
    reason: "the type of its blocks is in the bytes of a tensor",
};

const HIGGS: Method = Method {
    name: "HIGGS",
    methods: &["higgs"],
    leaves: &[&["tables2"], &["tables", "scales"]],
    reason: "its codes are in the order of a kernel",
};

const HQQ: Method = Method {
    name: "HQQ",
    methods: &["hqq"],
    leaves: &[&["W_q"]],
    reason: "its weights are packed across rows, and the shape is in the bytes of a tensor",
};

const MARLIN: Method = Method {
    name: "Marlin",
    methods: &["marlin", "gptq_marlin", "awq_marlin"],
    leaves: &[&["B", "s"], &["B", "workspace"], &["B_24"], &["B_meta"]],
    reason: "its words are in the order of a kernel",
};

const MARLIN_24: Method = Method {
    name: "marlin-24",
    methods: &["marlin_24"],
    leaves: &[&["scale_packed"], &["meta", "weight_packed"]],
    reason: "its words are in the order of a kernel",
};

const MODELOPT_INT4: Method =
    Method { name: "ModelOpt INT4", methods: &[], leaves: &[], reason: "two outputs share a byte" };

const QQQ: Method = Method {
    name: "QQQ",
    methods: &["qqq"],
    leaves: &[&["s_channel"], &["s_group"]],
    reason: "its words are in the order of a kernel",
};

const QTIP: Method = Method {
    name: "QTIP",
    methods: &["qtip"],
    leaves: &[&["SU", "trellis"], &["SV", "trellis"], &["tlut"]],
    reason: "its trellises encode tiles, after a transform across inputs and outputs",
};

const QUANTO: Method = Method {
    name: "Quanto",
    methods: &["quanto"],
    leaves: &[&["weight._data"], &["weight._scale"], &["_data", "_scale"]],
    reason: "its weights are packed across rows",
};

const QUIP: Method = Method {
    name: "QuIP#",
    methods: &["quip", "quip#", "quip_sharp"],
    leaves: &[&["Qidxs"], &["Qidxs_list"], &["codebook_id"], &["SU", "SV"]],
    reason: "its codes stand for groups of weights, after a transform across inputs and outputs",
};

const SINQ: Method = Method {
    name: "SINQ",
    methods: &["sinq"],
    leaves: &[],
    reason: "its weights are packed across rows",
};

const SPARSE: Method = Method {
    name: "sparse compressed-tensors",
    methods: &[],
    leaves: &[
        &["bitmask"],
        &["weight.bitmask"],
        &["compressed", "shape"],
        &["weight.compressed"],
        &["row_offsets", "compressed"],
    ],
    reason: "only weights other than 0 are stored, row after row",
};

const SPQR: Method = Method {
    name: "SpQR",
    methods: &["spqr"],
    leaves: &[&["dense_weights"], &["col_vals"]],
    reason: "its words are tiles, and outliers are stored row after row",
};

const SQUEEZE_LLM: Method = Method {
    name: "SqueezeLLM",
    methods: &["squeezellm"],
    leaves: &[&["lookup_table"]],
    reason: "its codes stand for entries of tables",
};

const SVD_QUANT: Method = Method {
    name: "SVDQuant",
    methods: &["svdquant", "nunchaku"],
    leaves: &[&["wscales"], &["smooth_factor"]],
    reason: "its words are in the order of a kernel",
};

const TORCHAO: Method = Method {
    name: "torchao",
    methods: &["torchao"],
    leaves: &[
        &["_weight_qdata"],
        &["_weight_scale"],
        &["_weight_zero_point"],
        &["_weight_tensor_impl"],
    ],
    reason: "the form of each weight is in the metadata of its file",
};

const VPTQ: Method = Method {
    name: "VPTQ",
    methods: &["vptq"],
    leaves: &[
        &["centroids"],
        &["centroids.weight"],
        &["res_centroids.weight"],
        &["res_centroids"],
        &["indices", "perm"],
    ],
    reason: "its indices stand for vectors of weights in code books",
};

/// The method of the module of a tensor, if it is one of these.
pub(super) fn method_of(tensor: &Member<'_>) -> Option<&'static Method> {
    let near = tensor.siblings.near(tensor.position);
    let marked = near.filter(|(leaf, _)| !is_usual(leaf)).find_map(|(leaf, _)| {
        METHODS.iter().find(|method| {
            let mut sets = method.leaves.iter();
            sets.any(|set| set.contains(&leaf) && set.iter().all(|leaf| tensor.has(leaf)))
        })
    });
    marked.or_else(|| of_bytes(tensor)).or_else(|| of_integers(tensor))
}

/// The method that a configuration names, if it is one of these.
pub(super) fn configured(quantization: &Quantization) -> Option<&'static Method> {
    let name = quantization.method()?.to_ascii_lowercase().replace('-', "_");
    METHODS.iter().find(|method| method.methods.contains(&name.as_str()))
}

/// Whether a leaf belongs to weights that are cut, so that it shows no other method.
fn is_usual(leaf: &str) -> bool {
    matches!(
        leaf,
        "weight"
            | "bias"
            | "weight_scale"
            | "weight_scale_inv"
            | "weight_scale_2"
            | "weight_packed"
            | "weight_shape"
            | "input_scale"
            | "qweight"
            | "qzeros"
            | "scales"
            | "biases"
            | "g_idx"
    )
}

/// The method of a weight of bytes, whose leaves are those of methods that are cut.
fn of_bytes(tensor: &Member<'_>) -> Option<&'static Method> {
    let weight = tensor.sibling("weight").filter(|weight| weight.tensor.dtype == Dtype::U8)?;
    let named = tensor.quantization.and_then(configured);
    if let Some(scale) = weight.sibling("weight_scale") {
        let is_int4 = weight.has("weight_scale_2") || weight.has("pre_quant_scale");
        if is_int4 && scale.tensor.dtype != Dtype::F8E4M3 {
            return Some(&MODELOPT_INT4);
        }
        if !is_int4 && scale.tensor.shape.iter().all(|len| *len == 1) {
            return Some(&BITNET);
        }
    }
    named.filter(|method| *method == &BITNET)
}

/// The method of a weight of 8-bit integers with a leaf of scales that no other method has.
fn of_integers(tensor: &Member<'_>) -> Option<&'static Method> {
    let weight = tensor.sibling("weight").filter(|weight| weight.tensor.dtype == Dtype::I8)?;
    weight.has("weight_scales").then_some(&EETQ)
}

#[cfg(test)]
mod tests {
    use super::METHODS;

    #[test]
    fn a_set_of_leaves_belongs_to_one_method() {
        let sets = METHODS.iter().flat_map(|method| {
            method.leaves.iter().map(move |set| (method.name, set.iter().collect::<Vec<_>>()))
        });
        let sets: Vec<_> = sets.collect();
        for (name, set) in &sets {
            assert!(!set.is_empty(), "{name}");
            for (other, leaves) in sets.iter().filter(|(other, _)| other != name) {
                assert!(!set.iter().all(|leaf| leaves.contains(leaf)), "{name} {other} {set:?}");
            }
        }
    }

    #[test]
    fn methods_are_in_the_order_of_their_names() {
        let names: Vec<_> = METHODS.iter().map(|method| method.name.to_lowercase()).collect();
        assert!(names.is_sorted(), "{names:?}");
    }
}
