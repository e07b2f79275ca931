//! Hostile names, paths and values: nothing that is said of them acts on a terminal.

use std::fmt::Debug;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use modeldir::beside::FileRole;
use modeldir::options::{Unindexed, Weights};
use modeldir::{Error, ModelDir, OpenOptions};
use modeldir_fixtures::{RawFile, ShardedModel, Tensor as Made, file};
use modeldir_tests::{HARM, harm_in, is_harmful};
use serde_json::{Value, json};
use tensorfile::{HeaderOptions, Selection, TensorFile, TrailingBytes};
use tracing_subscriber::fmt::format::FmtSpan;

use crate::alone::{is_alone, run_alone};

/// Fails if an error, shown in any way, holds anything harmful.
fn check_error<E: std::error::Error>(error: &E) {
    let mut text = format!("{error}\n{error:#?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!("\n{error}\n{error:#?}");
        cause = error.source();
    }
    check(&text);
    // Lists are all in one line here, so that it has no bound.
    assert!(!format!("{error:?}").contains(is_harmful));
}

fn check(text: &str) {
    assert_eq!(harm_in(text), None, "{:?}", start_of(text));
}

/// As much of a text as a failed test shows.
fn start_of(text: &str) -> String {
    text.chars().take(200).collect()
}

fn check_debug(value: &impl Debug) {
    check(&format!("{value:#?}"));
}

/// A harmful text as JSON, as long as names may be.
fn harmful() -> String {
    json!(format!("{HARM}{}", "n".repeat(3000))).to_string()
}

/// A harmful text as JSON that no limit bounds.
fn endless() -> String {
    json!(format!("{HARM}{}", "n".repeat(300_000))).to_string()
}

#[test]
fn errors_of_a_header_are_harmless() {
    let (name, text) = (harmful(), endless());
    let entry = |dtype: &str, shape: &str, offsets: &str| {
        format!(r#"{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}}}"#)
    };
    let fine = entry("\"U8\"", "[1]", "[0,1]");
    let headers = [
        format!("{{{name}:{fine},{name}:{fine}}}"),
        format!("{{{name}:{text}}}"),
        format!("{{{name}:{{{text}:1}}}}"),
        format!("{{{text}:{fine}}}"),
        format!("{{{name}:{}}}", entry(&text, "[1]", "[0,1]")),
        format!("{{{name}:{}}}", entry(&format!("{{{text}:null}}"), "[1]", "[0,1]")),
        format!("{{{name}:{}}}", entry("\"U8\"", &text, "[0,1]")),
        format!("{{{name}:{}}}", entry("\"U8\"", &format!("[{text}]"), "[0,1]")),
        format!("{{{name}:{}}}", entry("\"U8\"", "[1]", &text)),
        format!("{{{name}:{}}}", entry("\"U8\"", "[2]", "[0,1]")),
        format!("{{{name}:{}}}", entry("\"F4\"", "[1]", "[0,1]")),
        format!("{{{name}:{}}}", entry("\"U8\"", "[18446744073709551615,2]", "[0,1]")),
        format!("{{{name}:{}}}", entry("\"U8\"", &format!("[{}1]", "1,".repeat(99)), "[0,1]")),
        format!("{{{name}:{}}}", entry("\"U8\"", "[1]", "[1,0]")),
        format!("{{{name}:{}}}", entry("\"U8\"", "[1]", "[1,2]")),
        format!("{{{name}:{}}}", entry("\"U8\"", "[9]", "[0,9]")),
        format!("{{{name}:{fine},\"b\":{fine}}}"),
        format!(r#"{{"__metadata__":{{{text}:"",{text}:""}}}}"#),
        format!(r#"{{"__metadata__":{{{text}:1}}}}"#),
        format!(r#"{{"__metadata__":{text}}}"#),
        text.clone(),
        format!("{{}}{text}"),
        HARM.to_owned(),
    ];
    let path = Path::new(HARM).join("m".repeat(5000));
    for header in headers {
        let bytes = RawFile::from_header(header.clone()).data(&[0]).to_bytes();
        let opened = TensorFile::from_source(&path, &bytes[..], &HeaderOptions::default());
        check_error(&opened.map(drop).expect_err(&start_of(&header)));
    }
}

#[test]
fn what_is_said_of_a_tensor_and_of_a_file_is_harmless() {
    let header = format!(
        r#"{{"__metadata__":{{{0}:{0}}},{0}:{{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}}}"#,
        harmful()
    );
    let bytes = RawFile::from_header(header).data(&[7]).to_bytes();
    let file = TensorFile::from_source(HARM, &bytes[..], &HeaderOptions::default()).unwrap();
    let name = file.names().next().unwrap().to_owned();
    check_debug(&file.header());
    check_error(&file.read(HARM).unwrap_err());
    check_error(&file.read(&name[..name.len() - 1]).unwrap_err());
    let selection = Selection::all().with_range(0, 0..2);
    check_error(&file.read_selection(&name, &selection).unwrap_err());
    let selection = Selection::all().with_range(5, 0..2);
    check_error(&file.read_selection(&name, &selection).unwrap_err());
    let tensor = file.read(&name).unwrap();
    check_error(&tensor.as_slice::<f32>().unwrap_err());
    check_error(&tensor.as_slice::<bool>().unwrap_err());
    check_error(&tensor.to_f32().unwrap_err());
}

/// Writes a folder with a harmful name, and opens it.
fn open(files: &[(&str, String)], options: &OpenOptions) -> Result<ModelDir, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(HARM);
    fs::create_dir(&path).unwrap();
    for (name, text) in files {
        fs::write(path.join(name), text).unwrap();
    }
    ModelDir::open_with(&path, options)
}

const INDEX: &str = "model.safetensors.index.json";

#[test]
fn errors_of_an_index_are_harmless() {
    let (name, text) = (harmful(), endless());
    // A shard path may hold direction marks, but no control character.
    let marks = "\u{202e}\u{2066}\u{200f}\u{200b}\u{2028}\u{feff}";
    let shard = json!(format!("{marks}.safetensors")).to_string();
    let long = json!(format!("{marks}/{}.safetensors", "x/".repeat(1900))).to_string();
    let many: Vec<_> = (0..200)
        .map(|i| format!(r#""t{i}":{}"#, json!(format!("{marks}{i}.safetensors"))))
        .collect();
    let maps = [
        text.clone(),
        format!("{{{name}:{text}}}"),
        format!("{{{name}:1}}"),
        format!("{{{name}:{shard},{name}:{shard}}}"),
        format!("{{{name}:{shard}}}"),
        format!("{{{name}:{long},\"b\":{shard}}}"),
        format!("{{{name}:{shard}}}{text}"),
        format!("{{{}}}", many.join(",")),
    ];
    for map in maps {
        let index = format!(r#"{{"metadata":{{{text}:{text}}},"weight_map":{map}}}"#);
        check_error(&open(&[(INDEX, index)], &OpenOptions::default()).expect_err(&start_of(&map)));
    }
    for whole in [text.clone(), HARM.to_owned(), format!("<<<<<<< {text}")] {
        check_error(&open(&[(INDEX, whole)], &OpenOptions::default()).unwrap_err());
    }
}

/// A model with as much harm in it as opens, in a folder of a harmful name.
fn odd_model(folder: &Path) -> std::path::PathBuf {
    let path = folder.join(HARM);
    let name = |start: &str| format!("{start}{HARM}{}", "n".repeat(3000));
    let shards = ["a\u{202e}\u{2028}.safetensors", "b\u{200b}\u{feff}.safetensors"];
    let mapped = Made::random(&name("mapped"), "F32", &[2]);
    let model = ShardedModel::with_shards(&shards)
        .tensor(1, mapped.clone())
        .unmapped(2, mapped.clone())
        .tensor(2, Made::random(&name("other"), "F32", &[2]))
        .unmapped(2, Made::random(&name("unmapped"), "F32", &[2]))
        .index_metadata(
            &json!({ "total_size": format!("{HARM}{}", "9".repeat(9999)), HARM: mapped.name })
                .to_string(),
        );
    model.write(&path).unwrap();
    let config = |value: Value| {
        let (text, key) = (value.to_string(), json!(HARM));
        format!("{},{key}:1,{key}:2}}", &text[..text.len() - 1])
    };
    let long = format!("{HARM}{}", "c".repeat(5000));
    let value = json!({
        "model_type": long, "architectures": [long, long], "dtype": long, "hidden_size": long,
        "quantization_config": { "quant_method": long, "bits": long }, "eos_token_id": long
    });
    fs::write(path.join("config.json"), config(value.clone())).unwrap();
    fs::write(path.join("generation_config.json"), config(value)).unwrap();
    let adapter = json!({ "r": long, "target_modules": [1], "peft_type": long });
    fs::write(path.join("adapter_config.json"), config(adapter)).unwrap();
    fs::write(path.join("tokenizer.json"), HARM).unwrap();
    let template = json!({ "chat_template": [{ "name": long, "template": 1 }] });
    fs::write(path.join("tokenizer_config.json"), template.to_string()).unwrap();
    for ignored in ["\n\u{1b}[31m\u{202e}.safetensors", ".\u{85}.safetensors", "\u{2066}.gguf"] {
        fs::write(path.join(ignored), HARM).unwrap();
    }
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"\xed\xa0\x80\xff\x1b.safetensors");
        fs::write(path.join(name), HARM).unwrap();
    }
    path
}

#[test]
fn reports_and_what_is_asked_of_an_odd_model_are_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let path = odd_model(folder.path());
    let model = ModelDir::open(&path).unwrap();
    let report = model.report();
    assert!(report.to_string().lines().count() >= 8, "{report}");
    check(&report.to_string());
    check_debug(report);
    check_debug(&model.config().unwrap().notes());
    check_debug(&model.shards());
    check_error(&model.tokenizer().json().unwrap_err());
    check_error(&model.tokenizer().chat_templates().unwrap_err());
    check_error(&model.tokenizer().read(FileRole::Processor).unwrap_err());
    check_debug(&model.generation_config().unwrap().unwrap().notes());
    check_debug(&model.adapter_config().unwrap().unwrap().notes());
    // The name without the end is that of an alias.
    let absent = format!("{HARM}?");
    check_error(&model.info(&absent).map(drop).unwrap_err());
    check_error(&model.read(&model.names().next().unwrap()[1..]).unwrap_err());
    check_error(&model.plan().only([&absent]).map(drop).unwrap_err());
    check_error(&model.load().unwrap().get("x\u{202e}").map(drop).unwrap_err());

    let strict = OpenOptions { unindexed: Unindexed::Error, ..OpenOptions::default() };
    check_error(&ModelDir::open_with(&path, &strict).unwrap_err());
    let variant = Weights::variant(HARM).into();
    check_error(&ModelDir::open_with(&path, &variant).unwrap_err());
    fs::write(path.join("a\u{202e}\u{2028}.safetensors"), HARM).unwrap();
    check_error(&ModelDir::open(&path).unwrap_err());
    fs::remove_file(path.join(INDEX)).unwrap();
    check_error(&ModelDir::open(&path).unwrap_err());
    fs::write(path.join("config.json"), HARM).unwrap();
    check_error(&ModelDir::open(path.join("nothing")).unwrap_err());
}

#[test]
fn trailing_bytes_of_a_harmful_file_are_told_without_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{HARM}.safetensors"));
    let mut bytes = file(&[Made::random("w", "U8", &[1])]);
    bytes.extend(HARM.bytes());
    fs::write(&path, bytes).unwrap();
    check_error(&ModelDir::open(&path).unwrap_err());
    let header = HeaderOptions { trailing_bytes: TrailingBytes::Allow, ..HeaderOptions::default() };
    let options = OpenOptions { header, ..OpenOptions::default() };
    check(&ModelDir::open_with(&path, &options).unwrap().report().to_string());
}

/// Keeps what is written.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn spans_and_events_are_harmless() {
    // The threads of a load see the subscriber of the process, not that of a thread.
    if !is_alone() {
        return run_alone("hostile::spans_and_events_are_harmless", &[]);
    }
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(FmtSpan::FULL)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let folder = tempfile::tempdir().unwrap();
    let path = odd_model(folder.path());
    let model = ModelDir::open(&path).unwrap();
    let store = model.load().unwrap();
    store.save(folder.path().join(format!("saved{HARM}"))).unwrap();
    fs::remove_file(path.join("a\u{202e}\u{2028}.safetensors")).unwrap();
    assert!(model.load().is_err());
    let told = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(told.contains("open{path=") && told.contains("load"), "{told}");
    check(&told);
}
