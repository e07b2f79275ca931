//! What a model holds, for machines.

use modeldir::{IndexedTensor, ModelDir, Shard};
use serde_json::{Map, Value, json};

/// Returns all that opening a model shows as one JSON object.
pub fn model_json(model: &ModelDir) -> Value {
    let tensor = |tensor: IndexedTensor<'_>| {
        let (dtype, shape, byte_len) = (tensor.dtype().name(), tensor.shape(), tensor.byte_len());
        let shard = model.shards()[tensor.shard()].path();
        let value = json!({ "dtype": dtype, "shape": shape, "bytes": byte_len, "shard": shard });
        (tensor.name().to_owned(), value)
    };
    let shard = |shard: &Shard| {
        let (path, tensors, metadata) = (shard.path(), shard.num_tensors(), shard.metadata());
        json!({ "path": path, "bytes": shard.file_len(), "tensors": tensors, "metadata": metadata })
    };
    let files = model.tokenizer().iter().map(|(role, path)| (role.to_string(), json!(path)));
    json!({
        "path": model.path(),
        "tensors": model.tensors().map(tensor).collect::<Map<_, _>>(),
        "shards": model.shards().iter().map(shard).collect::<Vec<_>>(),
        "config": model.config().ok().map(|config| config.raw()),
        "quantization": model.quantization().ok().flatten().map(|found| found.raw().clone()),
        "tokenizer": files.collect::<Map<_, _>>(),
        "report": model.report().to_string().lines().collect::<Vec<_>>(),
    })
}
