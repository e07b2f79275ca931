//! Reads quantization descriptions: the names that methods give to the same field.

use serde_json::{Map, Value};

use super::Quantization;
use crate::json::Fields;

pub(super) type Object = Map<String, Value>;

/// Fields for the kind within a method.
const ALGORITHM: [&str; 6] =
    ["quant_algo", "format", "bnb_4bit_quant_type", "fmt", "mode", "checkpoint_format"];

/// Fields for the modules that are not quantized.
const SKIPPED: [&str; 6] = [
    "ignore",
    "modules_to_not_convert",
    "ignored_layers",
    "exclude_modules",
    "llm_int8_skip_modules",
    "exclude",
];

/// Bits of a weight by a part of the name of a method or algorithm; the first match wins.
const BITS_BY_NAME: [(&str, usize); 8] = [
    ("nvfp4", 4),
    ("mxfp4", 4),
    ("w4a", 4),
    ("int4", 4),
    ("fp8", 8),
    ("float8", 8),
    ("int8", 8),
    ("w8a8", 8),
];

/// Reads a description; `source` names where it was found.
pub(super) fn read(object: &Object, source: &str, notes: Vec<String>) -> Quantization {
    let mut fields = Fields::new(object, notes).with_nested(&["quantization"]);
    let mut groups = Groups::of(object);
    let algorithm = fields.string(&ALGORITHM).map(str::to_owned);
    let method = method(&mut fields, source);
    let zero_point = fields.bool(&["zero_point"]);
    let bits = bits(&mut fields).or_else(|| groups.same(|f| f.usize(&["num_bits"])));
    let implied =
        || [algorithm.as_deref(), method.as_deref()].into_iter().flatten().find_map(implied_bits);
    let stated_group_size = fields.i64(&["group_size", "q_group_size"]);
    Quantization {
        source: source.to_owned(),
        bits: bits.or_else(|| if groups.differ { None } else { implied() }),
        group_size: stated_group_size.or_else(|| groups.same(|f| f.i64(&["group_size"]))),
        desc_act: fields.bool(&["desc_act"]),
        sym: fields
            .bool(&["sym", "symmetric"])
            .or_else(|| zero_point.map(|asymmetric| !asymmetric))
            .or_else(|| groups.same(|f| f.bool(&["symmetric"]))),
        weight_block_size: fields
            .usizes(&["weight_block_size"])
            .or_else(|| groups.same(|f| f.usizes(&["block_structure"])))
            .unwrap_or_default(),
        skipped_modules: fields.strings(&SKIPPED).unwrap_or_else(|| switched_off(object)),
        kv_cache: fields.value(&["kv_cache_scheme", "kv_cache_quant_algo"]).cloned(),
        method,
        algorithm,
        raw: Value::Object(object.clone()),
        notes: fields.into_notes(),
    }
}

/// The method, as stated or as implied by the source.
fn method(fields: &mut Fields<'_>, source: &str) -> Option<String> {
    let stated = fields.string(&["quant_method", "producer.name"]).map(str::to_owned);
    stated.or_else(|| {
        let implied = match source {
            "quantization" => "mlx",
            "quantize_config.json" => "gptq",
            "quant_config.json" => "awq",
            "hf_quant_config.json" => "modelopt",
            "compression_config" => "compressed-tensors",
            _ if fields.value(&["quant_algo"]).is_some() => "modelopt",
            _ if fields.value(&["load_in_4bit", "load_in_8bit"]).is_some() => "bitsandbytes",
            _ => return None,
        };
        Some(implied.to_owned())
    })
}

/// The bits of a weight, as stated.
fn bits(fields: &mut Fields<'_>) -> Option<usize> {
    fields.usize(&["bits", "w_bit", "weight_bits"]).or_else(|| {
        let flags = [("load_in_4bit", 4), ("load_in_8bit", 8)];
        flags.into_iter().find(|(flag, _)| fields.bool(&[flag]) == Some(true)).map(|(_, bits)| bits)
    })
}

/// The bits implied by the name of a method or algorithm.
fn implied_bits(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    BITS_BY_NAME.into_iter().find(|(part, _)| name.contains(part)).map(|(_, bits)| bits)
}

/// The modules that MLX excludes one by one.
fn switched_off(object: &Object) -> Vec<String> {
    let off =
        object.iter().filter(|(name, value)| name.contains('.') && *value == &Value::Bool(false));
    off.map(|(name, _)| name.clone()).collect()
}

/// Groups of layers with a quantization of their weights each.
struct Groups<'a> {
    weights: Vec<&'a Object>,
    /// Whether a value read so far differs between groups.
    differ: bool,
}

impl<'a> Groups<'a> {
    fn of(object: &'a Object) -> Self {
        let groups = object_at(object, "config_groups").into_iter().flat_map(Map::values);
        let weights = groups.filter_map(|group| group.get("weights")?.as_object());
        Self { weights: weights.collect(), differ: false }
    }

    /// The value common to all groups.
    fn same<T: PartialEq>(&mut self, read: impl Fn(&mut Fields<'a>) -> Option<T>) -> Option<T> {
        let mut values =
            self.weights.iter().map(|weights| read(&mut Fields::new(weights, Vec::new())));
        let first = values.next()?;
        if values.all(|value| value == first) {
            return first;
        }
        self.differ = true;
        None
    }
}

/// The object at a dotted path.
pub(super) fn object_at<'a>(object: &'a Object, path: &str) -> Option<&'a Object> {
    path.split('.').try_fold(object, |object, key| object.get(key)?.as_object())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Quantization;
    use crate::ModelConfig;

    fn from_config(value: &Value) -> Option<Quantization> {
        let config = ModelConfig::from_json("config.json", value.to_string().as_bytes()).unwrap();
        Quantization::from_config(&config)
    }

    /// Source, method, bits and group size of the quantization in a configuration.
    type Found<'a> = (&'a str, Option<&'a str>, Option<usize>, Option<i64>);

    fn check(config: &Value, expected: Found<'_>) {
        let found = from_config(config).unwrap();
        let summary = (found.source(), found.method(), found.bits(), found.group_size());
        assert_eq!(summary, expected, "{config}");
        assert_eq!(found.notes(), [""; 0], "{config}");
    }

    #[test]
    fn descriptions_are_found_wherever_they_sit() {
        let awq = json!({"quant_method": "awq", "bits": 4, "group_size": 128});
        for (config, place) in [
            (json!({"quantization_config": awq}), "quantization_config"),
            (
                json!({"text_config": {"quantization_config": awq}}),
                "text_config.quantization_config",
            ),
            (
                json!({"quantization_config": awq, "quantization": {"bits": 8}}),
                "quantization_config",
            ),
        ] {
            check(&config, (place, Some("awq"), Some(4), Some(128)));
        }
        let bare = json!({"group_size": 64, "bits": 4});
        let mlx = json!({"quantization": bare, "quantization_config": bare});
        check(&mlx, ("quantization", Some("mlx"), Some(4), Some(64)));
        let groups = json!({"group_0": {"weights": {"num_bits": 4, "group_size": 32}}});
        let compressed = json!({"compression_config": {"config_groups": groups}});
        check(&compressed, ("compression_config", Some("compressed-tensors"), Some(4), Some(32)));
        assert_eq!(from_config(&json!({"quantization_config": null})), None);
    }

    #[test]
    fn bits_are_stated_or_implied() {
        for (description, method, bits) in [
            (json!({"load_in_8bit": true, "load_in_4bit": false}), "bitsandbytes", 8),
            (json!({"quant_algo": "NVFP4", "producer": {"name": "modelopt"}}), "modelopt", 4),
            (json!({"quant_algo": "FP8"}), "modelopt", 8),
            (json!({"quant_method": "mxfp4"}), "mxfp4", 4),
            (json!({"quant_method": "fp8", "weight_block_size": [128, 128]}), "fp8", 8),
        ] {
            let config = json!({ "quantization_config": description });
            check(&config, ("quantization_config", Some(method), Some(bits), None));
        }
    }

    #[test]
    fn groups_that_differ_have_no_bits_in_common() {
        let group = |bits| json!({"weights": {"num_bits": bits, "group_size": 16}});
        let value = json!({"quantization_config": {
            "quant_algo": "MIXED_PRECISION_FP8", "config_groups": {"a": group(4), "b": group(8)}
        }});
        let found = from_config(&value).unwrap();
        assert_eq!((found.bits(), found.group_size()), (None, Some(16)));
    }

    #[test]
    fn skipped_modules_have_many_names() {
        for name in super::SKIPPED {
            let value = json!({"quantization_config": {"quant_method": "fp8", name: ["lm_head"]}});
            assert_eq!(from_config(&value).unwrap().skipped_modules(), ["lm_head"], "{name}");
        }
        let value = json!({"quantization": {"bits": 4, "lm_head.x": false, "b.c": {"bits": 8}}});
        assert_eq!(from_config(&value).unwrap().skipped_modules(), ["lm_head.x"]);
    }

    #[test]
    fn side_cars_know_their_method() {
        let cases = [
            (
                "quantize_config.json",
                json!({"bits": 3, "group_size": -1, "desc_act": true, "sym": true}),
                Some("gptq"),
                Some(3),
                Some(-1),
                Some(true),
            ),
            (
                "quant_config.json",
                json!({"w_bit": 4, "q_group_size": 128, "zero_point": true}),
                Some("awq"),
                Some(4),
                Some(128),
                Some(false),
            ),
            (
                "hf_quant_config.json",
                json!({"quantization": {"quant_algo": "NVFP4", "group_size": 16}}),
                Some("modelopt"),
                Some(4),
                Some(16),
                None,
            ),
        ];
        for (name, value, method, bits, group_size, sym) in cases {
            let found =
                Quantization::from_json(name, value.to_string().as_bytes()).unwrap().unwrap();
            assert_eq!((found.source(), found.method(), found.bits()), (name, method, bits));
            assert_eq!((found.group_size(), found.sym()), (group_size, sym), "{name}");
        }
    }

    #[test]
    fn the_cache_is_quantized_by_name_or_by_scheme() {
        for (name, scheme) in [
            ("kv_cache_scheme", json!("FP8")),
            ("kv_cache_scheme", json!({"num_bits": 8})),
            ("kv_cache_quant_algo", json!("FP8")),
        ] {
            let value = json!({"quantization_config": {"quant_method": "modelopt", name: scheme}});
            assert_eq!(from_config(&value).unwrap().kv_cache(), Some(&scheme));
        }
    }
}
