//! What a model holds, for machines.

use std::fmt::Write;
use std::path::Path;

use modeldir::{Error, IndexedTensor, ModelDir, Shard};
use serde_json::{Map, Value, json};
use tensorfile::Metadata;

/// Returns all that opening a model shows as one JSON object. Files that are broken are told of under
/// `errors`.
pub fn model_json(model: &ModelDir) -> Value {
    let tensor = |tensor: IndexedTensor<'_>| {
        let (dtype, shape, byte_len) = (tensor.dtype().name(), tensor.shape(), tensor.byte_len());
        let shard = text(model.shards()[tensor.shard()].path());
        let value = json!({ "dtype": dtype, "shape": shape, "bytes": byte_len, "shard": shard });
        (tensor.name().to_owned(), value)
    };
    let shard = |shard: &Shard| {
        let (path, tensors, metadata) =
            (text(shard.path()), shard.num_tensors(), shard.metadata().map(Metadata::to_map));
        json!({ "path": path, "bytes": shard.file_len(), "tensors": tensors, "metadata": metadata })
    };
    let files = model.tokenizer().iter().map(|(role, path)| (role.to_string(), json!(text(path))));
    let (config, quantization) = (model.config(), model.quantization());
    let errors = [config.as_ref().err(), quantization.as_ref().err()].into_iter().flatten();
    let mut errors: Vec<String> = errors
        .filter(|error| !matches!(error, Error::NoFile { .. }))
        .map(ToString::to_string)
        .collect();
    errors.dedup();
    json!({
        "path": text(model.path()),
        "tensors": model.tensors().map(tensor).collect::<Map<_, _>>(),
        "shards": model.shards().iter().map(shard).collect::<Vec<_>>(),
        "config": config.ok().map(|config| config.raw()),
        "quantization": quantization.ok().flatten().map(|found| found.raw().clone()),
        "errors": errors,
        "tokenizer": files.collect::<Map<_, _>>(),
        "report": model.report().to_string().lines().collect::<Vec<_>>(),
    })
}

/// A path as text, for JSON has no other; what is not Unicode is shown by a mark.
fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Returns the text of a JSON value, in which characters that a terminal would act on, such as
/// direction marks, are written as escapes. JSON itself asks for that of the first 32 only.
///
/// # Errors
///
/// None that a value of JSON could cause.
pub fn json_text(value: &Value) -> serde_json::Result<String> {
    let json = serde_json::to_string_pretty(value)?;
    let mut text = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        let is_plain = c == '\n' || (c.is_ascii() && !c.is_control());
        if is_plain || (!c.is_ascii() && c.escape_debug().len() == 1) {
            text.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            // Writing into a text does not fail.
            let _written = write!(text, "\\u{unit:04x}");
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{json_text, model_json};

    #[cfg(target_os = "linux")]
    #[test]
    fn a_path_that_is_not_unicode_is_shown_all_the_same() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(std::ffi::OsStr::from_bytes(b"m\xff"));
        std::os::unix::fs::symlink(modeldir_fixtures::model("llama"), &path).unwrap();
        let value = model_json(&modeldir::ModelDir::open(&path).unwrap());
        assert!(value["path"].as_str().unwrap().ends_with("m\u{fffd}"), "{}", value["path"]);
    }

    #[test]
    fn nothing_that_a_terminal_acts_on_is_left_and_the_value_is_the_same() {
        let value = json!({ "a\u{202e}\u{85}": ["\u{7f}\u{1b}[m\n", "\u{e0001}", "é模👍"] });
        let text = json_text(&value).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(text.contains("\\u202e\\u0085") && text.contains("\\udb40\\udc01"), "{text}");
        assert!(text.contains("é模👍") && !text.contains(['\u{7f}', '\u{1b}']), "{text}");
    }
}
