//! Every sub-command on models with hostile names and values: what they print acts on no terminal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::json;

use crate::model::copy_of_llama;
use crate::program::{command, run, stderr, stdout};
use crate::{COMMANDS, args};

/// Colours, a forged line, direction marks, zero width, line separators.
const HARM: &str =
    "x\u{1b}[31m\nforged\r\u{7f}\u{85}\u{9b}\u{200b}\u{200f}\u{2028}\u{202e}\u{2066}y";

/// The longest line of tables and messages, in bytes.
const MAX_LINE_BYTES: usize = 32 << 10;

fn is_harmful(c: char) -> bool {
    c != '\n' && (c.is_control() || "\u{200b}\u{200f}\u{2028}\u{202e}\u{2066}".contains(c))
}

/// A small model in which every name and value that may be odd is.
fn odd_model(folder: &Path) -> PathBuf {
    let path = folder.join(HARM);
    fs::create_dir(&path).unwrap();
    let shard = "s\u{202e}\u{2028}\u{200b}.safetensors";
    let name = format!("w{HARM}{}", "n".repeat(3000));
    let header = json!({
        "__metadata__": { HARM: HARM, "tied": name, "long": "m".repeat(100_000) },
        name.clone(): { "dtype": "F32", "shape": [2], "data_offsets": [0, 8] },
        format!("{name}2"): { "dtype": "U8", "shape": [2], "data_offsets": [8, 10] },
    });
    let header = header.to_string();
    let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 10]].concat();
    fs::write(path.join(shard), bytes).unwrap();
    let index = json!({ "metadata": { "total_size": HARM }, "weight_map": { name: shard } });
    fs::write(path.join("model.safetensors.index.json"), index.to_string()).unwrap();
    let long = format!("{HARM}{}", "c".repeat(5000));
    let key = json!(long);
    let config = format!(
        r#"{{"architectures":[{key},{key}],"hidden_size":{key},"model_type":{key},{key}:1,{key}:2,
            "quantization_config":{{"quant_method":{key}}}}}"#
    );
    fs::write(path.join("config.json"), config).unwrap();
    fs::write(path.join("tokenizer.json"), HARM).unwrap();
    for ignored in [format!("i{HARM}.safetensors"), format!("i{HARM}.gguf")] {
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

/// Fails if a sub-command prints anything harmful. The log of the library is part of it.
fn check(name: &str, path: &Path, more: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(name);
    command.args(args(name, path, folder.path())).args(more).env("RUST_LOG", "modeldir=trace");
    let output = command.output().unwrap();
    assert!(output.status.code().is_some_and(|code| code < 2), "{name}: {output:?}");
    check_output(name, &output, more.contains(&"--json"));
}

fn check_output(name: &str, output: &Output, is_json: bool) {
    for text in [stdout(output), stderr(output)] {
        let harm = text.chars().find(|c| is_harmful(*c));
        assert_eq!(harm, None, "{name}: {text:?}");
        let long = text.lines().map(str::len).find(|len| *len > MAX_LINE_BYTES);
        // What is for machines is whole.
        assert!(is_json || long.is_none(), "{name}: a line of {long:?} bytes");
    }
}

#[test]
fn no_command_prints_what_acts_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = odd_model(folder.path());
    for (name, _) in COMMANDS {
        for json in [&[][..], &["--json"]] {
            check(name, &path, json);
            check(name, &path.join(HARM), json);
        }
    }
    let name = format!("w{HARM}{}", "n".repeat(3000));
    for name in [name.as_str(), "w\u{202e}"] {
        let output = run("slice", &[path.as_os_str(), name.as_ref(), "0..1".as_ref()]);
        check_output("slice", &output, false);
    }
    check("inspect", &path, &["--all"]);
    check("save", &path, &["--verify", "--cast=bf16"]);
    fs::remove_file(path.join("s\u{202e}\u{2028}\u{200b}.safetensors")).unwrap();
    for (name, _) in COMMANDS {
        check(name, &path, &[]);
    }
}

#[test]
fn inspect_says_in_json_why_there_is_no_configuration() {
    let folder = copy_of_llama();
    fs::write(folder.path().join("config.json"), "{").unwrap();
    let output = command("inspect").arg(folder.path()).arg("--json").output().unwrap();
    let told: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(told["config"], serde_json::Value::Null);
    let errors: Vec<_> =
        told["errors"].as_array().unwrap().iter().flat_map(|e| e.as_str()).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("config.json: line 1 column"), "{errors:?}");
}
