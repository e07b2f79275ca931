//! Nests of values, 200,000 deep, at every place of every JSON text, on a small stack.

use std::fs;
use std::path::Path;
use std::thread;

use modeldir::beside::FileRole;
use modeldir::{Error, ErrorKind, ModelDir, Partition};
use modeldir_fixtures::{RawFile, Tensor as Made, file};
use tensorfile::{HeaderOptions, TensorFile};

/// How deep a nest is: far beyond what is accepted. A parser that recurses takes some hundred bytes
/// of stack for each level.
const DEPTH: usize = 200_000;

/// How deep a nest is that is accepted beside the weights: a parser takes the more stack for it.
const ACCEPTED_DEPTH: usize = 120;

/// Runs on a stack that no recursion of that depth fits in.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(256 << 10).spawn(test).unwrap().join().unwrap();
}

/// Nests of lists, of objects and of both, closed and not.
fn nests(depth: usize) -> Vec<String> {
    let mut nests = Vec::new();
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]"), ("[1,", "]")] {
        let depth = depth / open.matches(['[', '{']).count();
        nests.push(format!("{}0{}", open.repeat(depth), close.repeat(depth)));
        nests.push(open.repeat(depth));
    }
    nests
}

/// The text with each nest in place of `@`.
fn nested<'n>(nests: &'n [String], text: &'n str) -> impl Iterator<Item = String> + 'n {
    assert_eq!(text.matches('@').count(), 1, "{text}");
    nests.iter().map(|nest| text.replace('@', nest))
}

/// Headers with a place for a nest, and without one a tensor of no bytes.
const HEADERS: [&str; 15] = [
    "@",
    r#"{"w":@}"#,
    r#"{"w":{"dtype":@,"shape":[0],"data_offsets":[0,0]}}"#,
    r#"{"w":{"dtype":{"U8":@},"shape":[0],"data_offsets":[0,0]}}"#,
    r#"{"w":{"dtype":"U8","shape":@,"data_offsets":[0,0]}}"#,
    r#"{"w":{"dtype":"U8","shape":[@],"data_offsets":[0,0]}}"#,
    r#"{"w":{"dtype":"U8","shape":[0,@],"data_offsets":[0,0]}}"#,
    r#"{"w":{"dtype":"U8","shape":[0],"data_offsets":@}}"#,
    r#"{"w":{"dtype":"U8","shape":[0],"data_offsets":[@,0]}}"#,
    r#"{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,@]}}"#,
    r#"{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0,@]}}"#,
    r#"{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":@}}"#,
    r#"{"__metadata__":@}"#,
    r#"{"__metadata__":{"a":@}}"#,
    r#"{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}@"#,
];

#[test]
fn a_nest_anywhere_in_a_header_is_an_error() {
    on_a_small_stack(|| {
        let nests = nests(DEPTH);
        let folder = model();
        // Beyond a limit the rest is read in another way.
        let strict = HeaderOptions { max_tensors: 0, max_rank: 0, ..HeaderOptions::default() };
        for header in HEADERS.iter().flat_map(|header| nested(&nests, header)) {
            let bytes = RawFile::from_header(header).to_bytes();
            for options in [&HeaderOptions::default(), &strict] {
                let opened = TensorFile::from_source("m", &bytes[..], options);
                assert!(opened.is_err(), "{:?}", &bytes[..80]);
            }
            fs::write(folder.path().join("model.safetensors"), &bytes).unwrap();
            let error = ModelDir::open(folder.path()).unwrap_err().to_string();
            assert!(error.contains("model.safetensors") && error.len() < 10_000, "{error}");
        }
    });
}

/// Indexes with a place for a nest.
const INDEXES: [&str; 10] = [
    "@",
    r#"{"weight_map":@}"#,
    r#"{"weight_map":{"w":@}}"#,
    r#"{"weight_map":{"w":"model.safetensors","v":@}}"#,
    r#"{"metadata":@,"weight_map":{"w":"model.safetensors"}}"#,
    r#"{"metadata":{"total_size":@},"weight_map":{"w":"model.safetensors"}}"#,
    r#"{"metadata":{"a":@},"weight_map":{"w":"model.safetensors"}}"#,
    r#"{"x":@,"weight_map":{"w":"model.safetensors"}}"#,
    r#"{"x":NaN,"y":@,"weight_map":{"w":"model.safetensors"}}"#,
    r#"{"w":"model.safetensors","metadata":@}"#,
];

/// A folder with a model of one tensor.
fn model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let weights = file(&[Made::random("w", "U8", &[1])]);
    fs::write(folder.path().join("model.safetensors"), weights).unwrap();
    folder
}

#[test]
fn a_nest_anywhere_in_an_index_is_a_verdict() {
    on_a_small_stack(|| {
        let (folder, nests) = (model(), nests(DEPTH));
        let index = folder.path().join("model.safetensors.index.json");
        for text in INDEXES.iter().flat_map(|index| nested(&nests, index)) {
            fs::write(&index, &text).unwrap();
            match ModelDir::open(folder.path()) {
                Ok(model) => assert_eq!(model.len(), 1),
                Err(error) => assert!(error.to_string().contains("index.json"), "{error}"),
            }
        }
    });
}

/// JSON files beside the weights with a place for a nest: at the top, under a key that is known,
/// and under one that is not.
const BESIDE: [(&str, &str); 12] = [
    ("config.json", "@"),
    ("config.json", r#"{"hidden_size":@}"#),
    ("config.json", r#"{"text_config":{"x":NaN,"quantization_config":@}}"#),
    ("params.json", r#"{"dim":@}"#),
    ("generation_config.json", "@"),
    ("generation_config.json", r#"{"eos_token_id":@}"#),
    ("tokenizer.json", "@"),
    ("tokenizer.json", r#"{"model":{"vocab":@}}"#),
    ("tokenizer_config.json", r#"{"chat_template":@}"#),
    ("model_index.json", "@"),
    ("model_index.json", r#"{"unet":@}"#),
    ("quantize_config.json", r#"{"bits":@}"#),
];

/// Asks for everything that a directory says, one of whose files holds a nest; returns whether any
/// of it is an error of that file.
fn ask(path: &Path, name: &str) -> bool {
    let is_pipeline = |error: &Error| matches!(error.kind(), ErrorKind::Pipeline { .. });
    let model = match ModelDir::open(path) {
        // Where the list of models cannot be read, any folder may be one.
        Err(error) if is_pipeline(&error) && name == "model_index.json" => {
            assert_eq!(error.path(), Some(path));
            return true;
        }
        opened => opened.unwrap(),
    };
    assert_eq!(model.load().unwrap().len(), 1);
    let said = [
        model.config().err(),
        model.generation_config().err(),
        model.adapter_config().err(),
        model.quantization().err(),
        model.tokenizer().chat_templates().err(),
        model.tokenizer().read(FileRole::Tokenizer).err(),
        model.tokenizer().read(FileRole::TokenizerConfig).err(),
    ];
    assert!(said.iter().flatten().all(|error| error.to_string().len() < 10_000));
    said.iter().flatten().any(|error| error.path() == Some(&path.join(name)))
}

#[test]
fn a_nest_anywhere_beside_the_weights_leaves_them_as_they_are() {
    on_a_small_stack(|| {
        let nests = [nests(DEPTH), nests(ACCEPTED_DEPTH)].concat();
        for (name, text) in BESIDE {
            for text in nested(&nests, text) {
                let is_too_deep = text.len() >= DEPTH;
                let folder = model();
                fs::create_dir(folder.path().join("unet")).unwrap();
                // Versioned names are looked up in the tokenizer's configuration.
                fs::write(folder.path().join("tokenizer.1.0.json"), "{}").unwrap();
                fs::write(folder.path().join(name), &text).unwrap();
                let is_told = ask(folder.path(), name);
                assert!(is_told || !is_too_deep, "{name}: {:?}", &text[..40]);
                assert!(Partition::from_json(text.as_bytes()).is_err());
            }
        }
    });
}
