//! Tensors that built-in rules refuse: of unknown layouts, of methods that are not cut, of shapes
//! that contradict the configuration.

use serde_json::{Value, json};
use tensorfile::Dtype::{self, BF16, F16, F32, I8, I16, I32, U8};
use tensorfile::Selection;

use super::{TensorShape, dim, topology};
use crate::error::ErrorKind;
use crate::partition::{Axis, Misfit, Partition, PartitionError};
use crate::{Error, ModelConfig, Quantization};

/// A stored tensor of a linear layer: leaf, dtype and shape.
type Stored = (&'static str, Dtype, Vec<usize>);

/// A small Llama with heads of 64 elements.
fn llama() -> Value {
    json!({"model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1})
}

/// Outputs and inputs of the linear layers of the small Llama.
const LINEAR: [(&str, usize, usize); 7] = [
    ("mlp.down_proj", 256, 512),
    ("mlp.gate_proj", 512, 256),
    ("mlp.up_proj", 512, 256),
    ("self_attn.k_proj", 128, 256),
    ("self_attn.o_proj", 256, 256),
    ("self_attn.q_proj", 256, 256),
    ("self_attn.v_proj", 128, 256),
];

/// The tensors of the linear layers of the small Llama.
fn layers(stored: impl Fn(usize, usize) -> Vec<Stored>) -> Vec<(String, Dtype, Vec<usize>)> {
    let of_layer = |(name, outputs, inputs): (&str, usize, usize)| {
        let tensors = stored(outputs, inputs).into_iter();
        let name = name.to_owned();
        tensors.map(move |(leaf, dtype, shape)| {
            (format!("model.layers.0.{name}.{leaf}"), dtype, shape)
        })
    };
    LINEAR.into_iter().flat_map(of_layer).collect()
}

/// The parts of the second of two ranks.
fn cut(
    config: &Value,
    own: Option<Value>,
    tensors: &[(String, Dtype, Vec<usize>)],
) -> Result<Vec<Option<Selection>>, Error> {
    let config = ModelConfig::from_json("config.json", config.to_string().as_bytes())?;
    let mut rules = Partition::for_config(&config)?;
    if let Some(own) = own {
        rules = rules.with_rules([serde_json::from_value(own).unwrap()]);
    }
    let shapes: Vec<_> = tensors
        .iter()
        .map(|(name, dtype, shape)| TensorShape { name, dtype: *dtype, shape })
        .collect();
    let quantization = Quantization::from_config(&config);
    let ranks = topology(&json!({"tp": "1/2"}));
    Ok(rules.cut(&ranks, quantization.as_ref(), &shapes)?.parts)
}

/// Why a tensor is refused.
fn misfit(error: Error) -> Misfit {
    match error.into_kind() {
        ErrorKind::Partition(PartitionError::Cut { misfit, .. }) => misfit,
        other => panic!("not {other:?}"),
    }
}

/// A method, the quantization in a configuration, and what is stored of a layer.
type Case = (&'static str, Value, fn(usize, usize) -> Vec<Stored>);

/// Methods with codes, or with permuted or transformed inputs.
fn of_codes() -> Vec<Case> {
    vec![
        ("AQLM", json!({"quant_method": "aqlm"}), |o, i| {
            vec![
                ("codebooks", F16, vec![1, 65536, 1, 8]),
                ("codes", I16, vec![o, i / 8, 1]),
                ("scales", F16, vec![o, 1, 1, 1]),
            ]
        }),
        ("EXL2", json!({"quant_method": "exl2", "bits": 4.0}), |o, i| {
            vec![
                ("q_groups", I16, vec![i / 16]),
                ("q_invperm", I16, vec![i]),
                ("q_scale", I32, vec![i / 32, o / 8]),
                ("q_scale_max", F16, vec![i / 32]),
                ("q_weight", I32, vec![i / 8, o]),
            ]
        }),
        ("EXL3", json!({"quant_method": "exl3", "bits": 4.0}), |o, i| {
            vec![
                ("suh", F16, vec![i]),
                ("svh", F16, vec![o]),
                ("trellis", I16, vec![i / 16, o / 16, 64]),
            ]
        }),
        ("QuIP#", json!(null), |o, i| {
            vec![
                ("Qidxs", I16, vec![o, i / 8]),
                ("SU", F16, vec![i]),
                ("SV", F16, vec![o]),
                ("Wscale", F32, vec![]),
            ]
        }),
        ("SqueezeLLM", json!({"quant_method": "squeezellm"}), |o, i| {
            vec![("lookup_table", F16, vec![o, 16]), ("qweight", I32, vec![i / 8, o])]
        }),
        ("VPTQ", json!({"quant_method": "vptq"}), |o, i| {
            vec![
                ("centroids.weight", BF16, vec![1, 65536 * 8]),
                ("indices", I16, vec![1, o / 8, i]),
                ("perm", I16, vec![i]),
            ]
        }),
    ]
}

/// Methods with weights in the order of a kernel.
fn of_kernels() -> Vec<Case> {
    vec![
        ("BitNet", json!({"quant_method": "bitnet"}), |o, i| {
            vec![("weight", U8, vec![o / 4, i]), ("weight_scale", BF16, vec![1])]
        }),
        ("EETQ", json!({"quant_method": "eetq"}), |o, i| {
            vec![("weight", I8, vec![i, o]), ("weight_scales", F16, vec![o])]
        }),
        ("FP-Quant", json!({"quant_method": "fp_quant"}), |o, i| {
            vec![
                ("backward_hadamard_matrix", BF16, vec![32, 32]),
                ("forward_hadamard_matrix", BF16, vec![32, 32]),
                ("qweight", U8, vec![o, i / 2]),
                ("scales", U8, vec![o, i / 32]),
            ]
        }),
        ("HIGGS", json!({"quant_method": "higgs"}), |o, i| {
            vec![
                ("scales", F16, vec![i / 64, o]),
                ("tables", F16, vec![16, 2]),
                ("tables2", F32, vec![256, 256, 1]),
                ("weight", I16, vec![o / 4, i]),
            ]
        }),
        ("HQQ", json!({"quant_method": "hqq"}), |o, i| {
            vec![
                ("W_q", U8, vec![o / 2, i]),
                ("scale", F16, vec![o * i / 64, 1]),
                ("zero", F16, vec![o * i / 64, 1]),
            ]
        }),
        ("Marlin", json!({"quant_method": "marlin", "bits": 4, "group_size": -1}), |o, i| {
            vec![
                ("B", I32, vec![i / 16, o * 2]),
                ("s", F16, vec![i / 32, o]),
                ("workspace", I32, vec![16]),
            ]
        }),
    ]
}

/// Methods whose weights are described elsewhere, or stored below a module.
fn others() -> Vec<Case> {
    vec![
        ("comfy_quant", json!(null), |o, i| {
            vec![
                ("comfy_quant", U8, vec![64]),
                ("weight", Dtype::F8E4M3, vec![o, i]),
                ("weight_scale", F32, vec![]),
            ]
        }),
        ("ModelOpt INT4", json!({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}), |o, i| {
            vec![
                ("pre_quant_scale", BF16, vec![i]),
                ("weight", U8, vec![o / 2, i]),
                ("weight_scale", F32, vec![o, i / 128]),
                ("weight_scale_2", F32, vec![]),
            ]
        }),
        ("Quanto", json!({"quant_method": "quanto"}), |o, i| {
            vec![
                ("weight._data", U8, vec![o / 2, i]),
                ("weight._scale", BF16, vec![o, 1]),
                ("weight._shift", BF16, vec![o, 1]),
                ("input_scale", F32, vec![2]),
            ]
        }),
        ("SpQR", json!({"quant_method": "spqr"}), |o, i| {
            vec![
                ("col_vals", I32, vec![40]),
                ("dense_weights", Dtype::I64, vec![o * i / 21]),
                ("row_offsets", I32, vec![o + 1]),
            ]
        }),
        ("torchao", json!({"quant_method": "torchao"}), |o, i| {
            vec![("_weight_qdata", I8, vec![o, i]), ("_weight_scale", BF16, vec![o, 1])]
        }),
    ]
}

fn methods() -> Vec<Case> {
    [of_codes(), of_kernels(), others()].concat()
}

#[test]
fn methods_that_are_not_cut_are_refused_by_their_names() {
    for (name, described, stored) in methods() {
        let tensors = layers(stored);
        // By the leaves alone, where the configuration is silent or says something else.
        for described in [described, json!(null), json!({"quant_method": "gptq", "bits": 4})] {
            let mut config = llama();
            config["quantization_config"] = described;
            let error = cut(&config, None, &tensors).unwrap_err();
            assert!(error.tensor().is_some(), "{error}");
            let shown = error.to_string();
            assert!(!shown.contains("Uneven") && !shown.contains("Misaligned"), "{shown}");
            let Misfit::Method { method, .. } = misfit(error) else { panic!("{shown}") };
            assert_eq!(method, name, "{shown}");
            // A rule of the caller for modules knows no more about it.
            let own = json!({"match": "**.(self_attn|mlp).*.*", "tp": "col"});
            let error = cut(&config, Some(own), &tensors).unwrap_err();
            assert!(matches!(misfit(error), Misfit::Method { .. }), "{name}");
        }
    }
}

#[test]
fn the_rule_that_an_error_shows_is_obeyed() {
    let (_, described, stored) = methods().into_iter().find(|case| case.0 == "EXL2").unwrap();
    let mut config = llama();
    config["quantization_config"] = described;
    let tensors = layers(stored);
    let error = cut(&config, None, &tensors[4..5]).unwrap_err();
    let expected = "tensor \"model.layers.0.mlp.down_proj.q_weight\": rule \"**.mlp.down_proj.*\": \
         EXL2 weights are not cut: its inputs are permuted, in groups of different bits; a rule of \
         your own before the others says what to do with it: \
         {\"match\": \"**.down_proj.q_weight\", \"tp\": \"replicate\"}, or \"tp\": \
         {\"split\": {\"axis\": {\"dim\": 0}}}";
    assert_eq!(error.to_string(), expected);
    let own = |tp: Value| json!({"match": "**.down_proj.q_weight", "tp": tp});
    let part = |own: Value| cut(&config, Some(own), &tensors[4..5]).unwrap().remove(0);
    assert_eq!(part(own(json!({"split": {"axis": {"dim": 0}}}))), dim(0, 32..64));
    assert_eq!(part(own(json!("replicate"))), super::whole());
    // A rule for the leaf says that it is plain, and one for an axis where it lies.
    assert_eq!(part(own(json!("row"))), dim(1, 128..256));
    let stated =
        json!({"match": "**.down_proj.*", "tp": "row", "layout": {"out": 1, "in": [0, 8]}});
    assert_eq!(part(stated), dim(0, 32..64));
}

#[test]
fn unknown_leaves_dtypes_and_methods_are_refused() {
    let cases: [(Value, Stored, Option<&str>); 7] = [
        (json!(null), ("weight", I8, vec![256, 512]), None),
        (json!(null), ("weight", U8, vec![256, 512]), None),
        (json!(null), ("weight", I32, vec![256, 64]), None),
        (json!(null), ("weight_v", BF16, vec![256, 512]), None),
        (json!({"quant_method": "new"}), ("packed", I32, vec![256, 64]), Some("new")),
        (json!({"quant_method": "new"}), ("weight_packed", I32, vec![256, 64]), Some("new")),
        (json!({"quant_method": "new"}), ("weight_scale", F32, vec![256, 1]), Some("new")),
    ];
    for (described, (leaf, dtype, shape), method) in cases {
        let mut config = llama();
        config["quantization_config"] = described;
        let tensor = (format!("model.layers.0.mlp.down_proj.{leaf}"), dtype, shape);
        let error = cut(&config, None, std::slice::from_ref(&tensor)).unwrap_err();
        assert_eq!(error.tensor(), Some(&*tensor.0));
        let expected = Misfit::UnknownLayout {
            leaf: leaf.into(),
            dtype,
            method: method.map(Box::from),
            pattern: format!("**.down_proj.{leaf}").into(),
        };
        assert_eq!(misfit(error), expected);
        // What the caller says is obeyed.
        let own =
            json!({"match": format!("**.down_proj.{leaf}"), "tp": {"split": {"axis": {"dim": 0}}}});
        let parts = cut(&config, Some(own), &[tensor]).unwrap();
        assert_eq!(parts, [dim(0, 128..256)]);
    }
}

#[test]
fn layers_that_an_unknown_method_left_alone_are_plain() {
    let mut config = llama();
    config["quantization_config"] = json!({"quant_method": "new"});
    let tensors = layers(|o, i| vec![("bias", BF16, vec![o]), ("weight", BF16, vec![o, i])]);
    let parts = cut(&config, None, &tensors).unwrap();
    assert_eq!(parts[..2], [super::whole(), dim(1, 256..512)]);
}

#[test]
fn four_bits_of_bitsandbytes_are_refused_whatever_they_are_stored_in() {
    for (dtype, per) in [(U8, 2), (BF16, 4), (F16, 4), (F32, 8)] {
        let tensors = layers(|o, i| {
            vec![
                ("weight", dtype, vec![o * i / per, 1]),
                ("weight.absmax", F32, vec![o * i / 64]),
                ("weight.quant_map", F32, vec![16]),
                ("weight.quant_state.bitsandbytes__nf4", U8, vec![86]),
            ]
        });
        for described in
            [json!(null), json!({"quant_method": "bitsandbytes", "load_in_4bit": true})]
        {
            let mut config = llama();
            config["quantization_config"] = described;
            let error = cut(&config, None, &tensors).unwrap_err();
            let reason = "bitsandbytes stores it flattened, in blocks that cross rows";
            assert_eq!(misfit(error), Misfit::Uncuttable { axis: Axis::In, reason });
            // Nor are they cut where blocks are covered.
            let cover = json!({"match": "**.mlp.*.*", "tp": {"split": {"axis": "in", "misaligned": "cover"}}});
            assert_eq!(cut(&config, Some(cover), &tensors[..4]).unwrap(), vec![super::whole(); 4]);
        }
    }
}

#[test]
fn shapes_that_contradict_the_configuration_are_refused() {
    let cases: [(&str, &[usize], Misfit); 7] = [
        (
            "self_attn.q_proj",
            &[512, 256],
            Misfit::Length { axis: Axis::Out, len: 512, stated: 256 },
        ),
        ("self_attn.q_proj", &[256, 128], Misfit::Length { axis: Axis::In, len: 128, stated: 256 }),
        (
            "self_attn.k_proj",
            &[256, 256],
            Misfit::Length { axis: Axis::Out, len: 256, stated: 128 },
        ),
        ("self_attn.o_proj", &[256, 512], Misfit::Length { axis: Axis::In, len: 512, stated: 256 }),
        ("mlp.up_proj", &[256, 512], Misfit::Length { axis: Axis::In, len: 512, stated: 256 }),
        ("mlp.down_proj", &[512, 256], Misfit::Length { axis: Axis::Out, len: 512, stated: 256 }),
        ("mlp.down_proj", &[65536, 1], Misfit::Length { axis: Axis::Out, len: 65536, stated: 256 }),
    ];
    for (module, shape, expected) in cases {
        let tensor = (format!("model.layers.0.{module}.weight"), BF16, shape.to_vec());
        let error = cut(&llama(), None, &[tensor]).unwrap_err();
        assert!(error.to_string().contains("the configuration says"), "{error}");
        assert_eq!(misfit(error), expected, "{module}");
    }
    let mut moe = llama();
    moe["model_type"] = json!("qwen3_moe");
    moe["num_experts"] = json!(8);
    let experts = ("model.layers.0.mlp.experts.down_proj".to_owned(), BF16, vec![4, 256, 64]);
    let error = cut(&moe, None, &[experts]).unwrap_err();
    assert_eq!(misfit(error), Misfit::Experts { count: 4, stated: 8 });
}

#[test]
fn lengths_that_need_not_agree_are_not_compared() {
    // A padded vocabulary, an inner width of another name, and heads of an unstated width.
    let mut config = llama();
    config["model_type"] = json!("qwen3");
    config["vocab_size"] = json!(1000);
    let tensor = |name: &str, shape: &[usize]| (name.to_owned(), BF16, shape.to_vec());
    let tensors = [
        tensor("model.embed_tokens.weight", &[1024, 256]),
        tensor("model.layers.0.mlp.down_proj.weight", &[256, 640]),
        tensor("model.layers.0.self_attn.k_proj.weight", &[256, 256]),
        tensor("model.layers.0.self_attn.q_proj.weight", &[512, 256]),
    ];
    cut(&config, None, &tensors).unwrap();
}

#[test]
fn heads_of_one_attention_are_equally_wide() {
    let mut config = llama();
    config["model_type"] = json!("qwen3");
    let tensor = |name: &str, shape: &[usize]| {
        (format!("model.layers.0.self_attn.{name}.weight"), BF16, shape.to_vec())
    };
    // Of 4 key and value heads, where the configuration says 2.
    let tensors = [tensor("k_proj", &[512, 256]), tensor("q_proj", &[512, 256])];
    let error = cut(&config, None, &tensors).unwrap_err();
    let expected = "tensor \"model.layers.0.self_attn.q_proj.weight\": rule \"**.self_attn.q_proj.*\": \
        4 heads of 128 elements, where \"model.layers.0.self_attn.k_proj.weight\" has heads of 256";
    assert_eq!(error.to_string(), expected);
}
