//! The files beside the weights: tokenizers by role, chat templates, generation, quantization.

use std::fs;
use std::path::Path;

use modeldir::beside::FileRole;
use modeldir::error::JsonError;
use modeldir::{ErrorKind, ModelDir, Partition, Topology};
use modeldir_fixtures::{Tensor as Made, Tree, file};
use tempfile::TempDir;

/// A model of one tensor with these files beside it.
fn beside(mut files: Tree) -> (TempDir, ModelDir) {
    files.put("model.safetensors", file(&[Made::random("t", "U8", &[8])]));
    let folder = tempfile::tempdir().unwrap();
    files.write(folder.path()).unwrap();
    let model = ModelDir::open(folder.path()).unwrap();
    (folder, model)
}

/// The files of a shipped tokenizer with weights beside them.
fn tokenizer(name: &str) -> (TempDir, ModelDir) {
    beside(Tree::read(&modeldir_fixtures::model(&format!("tokenizers/{name}"))).unwrap())
}

/// The name of a file.
fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap()
}

/// A folder, which role has which of its files, and which role is the vocabulary.
type Roles = (&'static str, &'static [(FileRole, &'static str)], Option<FileRole>);

const ROLES: [Roles; 12] = [
    (
        "bpe",
        &[
            (FileRole::TokenizerConfig, "tokenizer_config.json"),
            (FileRole::VocabJson, "vocab.json"),
            (FileRole::Merges, "merges.txt"),
        ],
        Some(FileRole::VocabJson),
    ),
    (
        "sentencepiece",
        &[
            (FileRole::TokenizerConfig, "tokenizer_config.json"),
            (FileRole::SpecialTokensMap, "special_tokens_map.json"),
            (FileRole::SentencePiece, "spiece.model"),
        ],
        Some(FileRole::SentencePiece),
    ),
    (
        "sentencepiece-llama",
        &[
            (FileRole::TokenizerConfig, "tokenizer_config.json"),
            (FileRole::AddedTokens, "added_tokens.json"),
            (FileRole::SentencePiece, "tokenizer.model"),
        ],
        Some(FileRole::SentencePiece),
    ),
    (
        "sentencepiece-versioned",
        &[(FileRole::SentencePiece, "tokenizer.model.v3")],
        Some(FileRole::SentencePiece),
    ),
    ("tekken", &[(FileRole::Tekken, "tekken.json")], Some(FileRole::Tekken)),
    (
        "template-files",
        &[
            (FileRole::TokenizerConfig, "tokenizer_config.json"),
            (FileRole::ChatTemplate, "chat_template.jinja"),
        ],
        None,
    ),
    (
        "template-legacy",
        &[
            (FileRole::ChatTemplateJson, "chat_template.json"),
            (FileRole::Preprocessor, "preprocessor_config.json"),
            (FileRole::Processor, "processor_config.json"),
            (FileRole::VideoPreprocessor, "video_preprocessor_config.json"),
        ],
        None,
    ),
    ("template-list", &[(FileRole::TokenizerConfig, "tokenizer_config.json")], None),
    (
        "tiktoken",
        &[
            (FileRole::TokenizerConfig, "tokenizer_config.json"),
            (FileRole::Tiktoken, "tiktoken.model"),
        ],
        Some(FileRole::Tiktoken),
    ),
    ("tiktoken-qwen", &[(FileRole::Tiktoken, "qwen.tiktoken")], Some(FileRole::Tiktoken)),
    (
        "versioned",
        &[
            (FileRole::Tokenizer, "tokenizer.4.0.0.json"),
            (FileRole::TokenizerConfig, "tokenizer_config.json"),
        ],
        Some(FileRole::Tokenizer),
    ),
    (
        "wordpiece",
        &[
            (FileRole::Tokenizer, "tokenizer.json"),
            (FileRole::TokenizerConfig, "tokenizer_config.json"),
            (FileRole::VocabText, "vocab.txt"),
        ],
        Some(FileRole::Tokenizer),
    ),
];

#[test]
fn every_shipped_tokenizer_has_its_roles_and_its_content() {
    let shipped = fs::read_dir(modeldir_fixtures::model("tokenizers")).unwrap();
    let mut shipped: Vec<_> = shipped.map(|entry| entry.unwrap().file_name()).collect();
    shipped.sort();
    assert!(shipped.iter().eq(ROLES.iter().map(|(name, _, _)| *name)), "{shipped:?}");
    for (name, roles, vocabulary) in ROLES {
        let (folder, model) = tokenizer(name);
        let files = model.tokenizer();
        let found: Vec<_> = files.iter().map(|(role, path)| (role, name_of(path))).collect();
        assert_eq!(found, roles, "{name}");
        assert_eq!(files.vocabulary().map(|(role, _)| role), vocabulary, "{name}");
        for (role, path) in files.iter() {
            assert_eq!(path.parent(), Some(folder.path()), "{name}");
            files.check(role).unwrap();
            let is_json = path.extension().is_some_and(|extension| extension == "json");
            assert_eq!(files.read(role).is_ok(), is_json, "{name}: {role}");
            if is_json {
                let text = fs::read(path).unwrap();
                let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
                // A length of 31 digits is a whole number here, and a float to the reference.
                assert_eq!(files.read(role).unwrap(), value, "{name}: {role}");
            }
        }
    }
}

#[test]
fn the_tokenizer_itself_is_read_through_its_own_calls() {
    let (_folder, model) = tokenizer("wordpiece");
    assert_eq!(model.tokenizer().json().unwrap()["model"]["type"], "WordPiece");
    assert_eq!(model.tokenizer().tokenizer_config().unwrap()["tokenizer_class"], "BertTokenizer");
    let (_folder, model) = tokenizer("tekken");
    let error = model.tokenizer().json().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoFile { .. }), "{error}");
    assert_eq!(model.tokenizer().read(FileRole::Tekken).unwrap()["config"]["version"], "v11");
}

/// A template's name, how its text starts, and its file.
type Template = (&'static str, &'static str, &'static str);

#[test]
fn every_shipped_template_is_read_from_where_it_lies() {
    let (jinja, legacy) = ("chat_template.jinja", "chat_template.json");
    let config = "tokenizer_config.json";
    let cases: [(&str, &[Template]); 4] = [
        (
            "template-files",
            &[
                ("default", "{% for message", jinja),
                ("rag", "{{ documents }}", "rag.jinja"),
                ("tool_use", "{% for tool in", "tool_use.jinja"),
            ],
        ),
        ("template-legacy", &[("default", "{% for message", legacy)]),
        (
            "template-list",
            &[("default", "{% for message", config), ("tool_use", "{% for tool in", config)],
        ),
        ("bpe", &[]),
    ];
    let ends = "{% if add_generation_prompt %}<|assistant|>\n{% endif %}";
    for (name, expected) in cases {
        let (_folder, model) = tokenizer(name);
        let templates = model.tokenizer().chat_templates().unwrap();
        assert_eq!(templates.len(), expected.len(), "{name}");
        for (template, (title, starts, path)) in templates.iter().zip(expected) {
            assert_eq!((&*template.name, name_of(&template.path)), (*title, *path), "{name}");
            let text = template.text.trim_end();
            assert!(text.starts_with(starts) && text.ends_with(ends), "{name}: {text}");
        }
    }
    let llama = ModelDir::open(modeldir_fixtures::model("llama")).unwrap();
    let [template] = &llama.tokenizer().chat_templates().unwrap()[..] else {
        panic!("one template")
    };
    assert_eq!(template.text, fs::read_to_string(&template.path).unwrap());
}

#[test]
fn generation_is_configured_where_there_is_a_file() {
    let open = |name| ModelDir::open(modeldir_fixtures::model(name)).unwrap();
    let config = open("llama").generation_config().unwrap().unwrap();
    assert_eq!((config.bos_token_ids(), config.eos_token_ids()), (&[1][..], &[2][..]));
    assert_eq!((config.pad_token_ids(), config.temperature()), (&[][..], None));
    assert_eq!(config.raw()["transformers_version"], "5.24.0");
    assert_eq!(config.notes(), [""; 0]);

    let (_folder, without) = tokenizer("tekken");
    assert!(without.generation_config().unwrap().is_none());
    let mut broken = Tree::new();
    broken.put("generation_config.json", "<html>");
    let error = beside(broken).1.generation_config().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Json(JsonError::NotJson { .. })), "{error}");
}

#[test]
fn an_adapter_is_configured_where_there_is_a_file() {
    let llama = ModelDir::open(modeldir_fixtures::model("llama")).unwrap();
    assert!(llama.adapter_config().unwrap().is_none());
    let mut folder = Tree::new();
    let json = r#"{"r": 8, "peft_type": "LORA", "target_modules": ["q_proj"]}"#;
    folder.put("adapter_config.json", json);
    let (_folder, model) = beside(folder);
    let config = model.adapter_config().unwrap().unwrap();
    assert_eq!((config.r(), config.peft_type()), (Some(8), Some("LORA")));
    assert_eq!(config.target_modules(), ["q_proj"]);
    let mut broken = Tree::new();
    broken.put("adapter_config.json", "<html>");
    let error = beside(broken).1.adapter_config().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Json(JsonError::NotJson { .. })), "{error}");
}

/// What a quantization is: its source, method, algorithm, bits, and weights a scale.
type Quantized = (&'static str, &'static str, Option<&'static str>, Option<usize>, Option<i64>);

#[test]
fn every_method_of_quantization_is_known_by_its_configuration() {
    let config = "quantization_config";
    let methods: [(&str, Quantized); 9] = [
        (
            r#"{"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true, "sym": true}"#,
            (config, "gptq", None, Some(4), Some(128)),
        ),
        (
            r#"{"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": true, "version": "gemm"}"#,
            (config, "awq", None, Some(4), Some(64)),
        ),
        (
            r#"{"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}"#,
            (config, "fp8", Some("e4m3"), Some(8), None),
        ),
        (
            r#"{"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}"#,
            (config, "mxfp4", None, Some(4), None),
        ),
        (
            r#"{"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"}"#,
            (config, "bitsandbytes", Some("nf4"), Some(4), None),
        ),
        (
            r#"{"quant_method": "bitsandbytes", "load_in_8bit": true}"#,
            (config, "bitsandbytes", None, Some(8), None),
        ),
        (
            r#"{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups":
               {"group_0": {"weights": {"num_bits": 4, "group_size": 32, "symmetric": true}}}}"#,
            (config, "compressed-tensors", Some("pack-quantized"), Some(4), Some(32)),
        ),
        (
            r#"{"quant_algo": "NVFP4", "group_size": 16}"#,
            (config, "modelopt", Some("NVFP4"), Some(4), Some(16)),
        ),
        (r#"{"quant_method": "quark", "bits": 6}"#, (config, "quark", None, Some(6), None)),
    ];
    for (text, wanted) in methods {
        let mut files = Tree::new();
        files.put("config.json", format!(r#"{{"{config}": {text}}}"#));
        assert_quantized(files, wanted);
    }
    let mut mlx = Tree::new();
    mlx.put("config.json", r#"{"quantization": {"group_size": 64, "bits": 4}}"#);
    assert_quantized(mlx, ("quantization", "mlx", None, Some(4), Some(64)));
}

#[test]
fn quantization_is_found_in_files_beside_the_configuration() {
    let files: [(&str, &str, Quantized); 3] = [
        (
            "quantize_config.json",
            r#"{"bits": 8, "group_size": -1}"#,
            ("quantize_config.json", "gptq", None, Some(8), Some(-1)),
        ),
        (
            "quant_config.json",
            r#"{"w_bit": 4, "q_group_size": 128}"#,
            ("quant_config.json", "awq", None, Some(4), Some(128)),
        ),
        (
            "hf_quant_config.json",
            r#"{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}"#,
            ("hf_quant_config.json", "modelopt", Some("FP8"), Some(8), None),
        ),
    ];
    for (name, text, wanted) in files {
        let mut files = Tree::new();
        files.put(name, text);
        assert_quantized(files, wanted);
    }
    let (_folder, plain) = tokenizer("bpe");
    assert!(plain.quantization().unwrap().is_none());
}

#[test]
fn a_broken_quantization_stops_only_those_who_need_it_and_is_read_once() {
    let (rules, rank) = (Partition::default(), Topology::single());
    let put = |folder: &TempDir, text| fs::write(folder.path().join("quant_config.json"), text);
    let mut broken = Tree::new();
    broken.put("quant_config.json", "{");
    let (folder, model) = beside(broken);
    assert_eq!(model.load().unwrap().len(), 1);
    put(&folder, r#"{"w_bit": 4}"#).unwrap();
    for error in [model.quantization().unwrap_err(), model.plan_for(&rules, &rank).unwrap_err()] {
        assert!(error.to_string().contains("quant_config.json"), "{error}");
    }
    let model = ModelDir::open(folder.path()).unwrap();
    put(&folder, "{").unwrap();
    assert_eq!(model.quantization().unwrap().unwrap().bits(), Some(4));
    assert_eq!(model.plan_for(&rules, &rank).unwrap().len(), 1);
}

fn assert_quantized(files: Tree, wanted: Quantized) {
    let (_folder, model) = beside(files);
    let found = model.quantization().unwrap().unwrap();
    let summary = (
        found.source(),
        found.method().unwrap_or_default(),
        found.algorithm(),
        found.bits(),
        found.group_size(),
    );
    assert_eq!(summary, wanted);
    assert_eq!(found.notes(), [""; 0], "{wanted:?}");
}

#[cfg(unix)]
#[test]
fn a_template_that_leads_nowhere_is_an_error_not_an_older_template() {
    let dir = tempfile::tempdir().expect("a folder");
    let put = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).expect("a file");
    put("model.safetensors", &file(&[]));
    put("tokenizer_config.json", br#"{"chat_template": "{{ old }}"}"#);
    std::os::unix::fs::symlink("../blobs/gone", dir.path().join("chat_template.jinja"))
        .expect("a link");
    let model = ModelDir::open(dir.path()).expect("a model without tensors");
    let error = model.tokenizer().chat_templates().expect_err("the template is not there");
    assert!(
        matches!(error.kind(), ErrorKind::File(tensorfile::ErrorKind::DanglingLink { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("chat_template.jinja"), "{error}");
}
