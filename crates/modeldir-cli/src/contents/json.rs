//! The content of a model as JSON.

use modeldir::{ErrorKind, IndexedTensor, ModelConfig, ModelDir, Shard};
use serde_json::{Map, Value, json};
use tensorfile::Metadata;

use crate::output::path_json;

/// Returns all that opening a model shows as one JSON object, with broken files under `errors`.
pub(crate) fn model_json(model: &ModelDir) -> Value {
    let tensor = |tensor: IndexedTensor<'_>| {
        let (dtype, shape, byte_len) = (tensor.dtype().name(), tensor.shape(), tensor.byte_len());
        let shard = path_json(tensor.shard().path());
        let value = json!({ "dtype": dtype, "shape": shape, "bytes": byte_len, "shard": shard });
        (tensor.name().to_owned(), value)
    };
    let shard = |shard: &Shard| {
        let (path, tensors, metadata) =
            (path_json(shard.path()), shard.num_tensors(), shard.metadata().map(Metadata::to_map));
        json!({ "path": path, "bytes": shard.file_bytes(), "tensors": tensors, "metadata": metadata })
    };
    let files =
        model.tokenizer().iter().map(|(role, path)| (role.to_string(), json!(path_json(path))));
    let (config, quantization) = (model.config(), model.quantization());
    let errors = [config.as_ref().err(), quantization.as_ref().err()].into_iter().flatten();
    let mut errors: Vec<String> = errors
        .filter(|error| !matches!(error.kind(), ErrorKind::NoFile { .. }))
        .map(ToString::to_string)
        .collect();
    errors.dedup();
    json!({
        "path": path_json(model.path()),
        "tensors": model.tensors().map(tensor).collect::<Map<_, _>>(),
        "shards": model.shards().iter().map(shard).collect::<Vec<_>>(),
        "config": config.ok().map(ModelConfig::raw),
        "quantization": quantization.ok().flatten().map(|found| found.raw().clone()),
        "errors": errors,
        "tokenizer": files.collect::<Map<_, _>>(),
        "report": model.report().to_string().lines().collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::model_json;

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
}
