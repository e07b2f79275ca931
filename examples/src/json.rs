//! What a model holds, for machines.

use std::path::Path;

use modeldir::{IndexedTensor, ModelDir, Shard};
use serde_json::{Map, Value, json};
use tensorfile::Metadata;

/// Returns all that opening a model shows as one JSON object.
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
    json!({
        "path": text(model.path()),
        "tensors": model.tensors().map(tensor).collect::<Map<_, _>>(),
        "shards": model.shards().iter().map(shard).collect::<Vec<_>>(),
        "config": model.config().ok().map(|config| config.raw()),
        "quantization": model.quantization().ok().flatten().map(|found| found.raw().clone()),
        "tokenizer": files.collect::<Map<_, _>>(),
        "report": model.report().to_string().lines().collect::<Vec<_>>(),
    })
}

/// A path as text, for JSON has no other; what is not Unicode is shown by a mark.
fn text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn a_path_that_is_not_unicode_is_shown_all_the_same() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(std::ffi::OsStr::from_bytes(b"m\xff"));
        std::os::unix::fs::symlink(modeldir_fixtures::model("llama"), &path).unwrap();
        let value = super::model_json(&modeldir::ModelDir::open(&path).unwrap());
        assert!(value["path"].as_str().unwrap().ends_with("m\u{fffd}"), "{}", value["path"]);
    }
}
