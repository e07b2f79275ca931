//! Every shipped model in every way of loading, against the digests of the library that wrote it.
#![expect(unsafe_code, reason = "mapping is one of the ways of loading")]

use modeldir::{LoadOptions, ModelDir, TensorStore};
use modeldir_fixtures::{Digest, sha256_hex};
use tensorfile::TensorFile;

use crate::loading::threads;

fn assert_digests(model: &str, store: &TensorStore) {
    let digests = modeldir_fixtures::digests(model);
    assert!(store.names().eq(digests.keys()), "{model}: names");
    for (name, Digest { dtype, shape, sha256, .. }) in &digests {
        let tensor = store.get(name).unwrap();
        assert_eq!(tensor.dtype().name(), dtype, "{model}: {name}");
        assert_eq!(tensor.shape(), shape, "{model}: {name}");
        assert_eq!(&sha256_hex(tensor.bytes()), sha256, "{model}: {name}");
    }
}

#[test]
fn every_model_loads_and_maps_with_the_bytes_that_were_written() {
    let models = modeldir_fixtures::models();
    assert!(models.len() >= 9, "{models:?}");
    for name in models {
        let model = ModelDir::open(modeldir_fixtures::model(&name)).unwrap();
        assert_digests(&name, &model.load().unwrap());
        for count in [1, 2, 8] {
            let options = LoadOptions { threads: threads(count), ..LoadOptions::default() };
            assert_digests(&name, &model.plan().load_with(&options).unwrap());
        }
        // SAFETY: nothing writes to the shipped models while tests run.
        let mapped = unsafe { model.plan().map() };
        assert_digests(&name, &mapped.unwrap());
    }
}

#[test]
fn every_tensor_is_in_the_file_that_the_digests_name() {
    for name in modeldir_fixtures::models() {
        let folder = modeldir_fixtures::model(&name);
        let model = ModelDir::open(&folder).unwrap();
        for (tensor, digest) in modeldir_fixtures::digests(&name) {
            let indexed = model.info(&tensor).unwrap();
            let shard = indexed.shard().path();
            assert_eq!(shard.to_str(), Some(&*digest.file), "{name}: {tensor}");
            let file = TensorFile::open(folder.join(shard)).unwrap();
            assert_eq!(sha256_hex(file.read(&tensor).unwrap().bytes()), digest.sha256);
        }
    }
}
