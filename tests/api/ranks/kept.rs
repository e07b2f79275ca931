//! What a rank's plan becomes: loaded, read, mapped, and saved as a directory of its own.
#![expect(unsafe_code, reason = "a plan for a rank is mapped too")]

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;

use modeldir::{
    ErrorKind, LoadOptions, LoadPlan, ModelDir, Partition, Rank, SaveOptions, Tensor, TensorStore,
    Topology,
};
use modeldir_fixtures::{ShardedModel, Tensor as Made};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::loading::threads;

fn llama() -> ModelDir {
    ModelDir::open(modeldir_fixtures::model("llama")).unwrap()
}

fn ranks(value: &Value) -> Topology {
    serde_json::from_value(value.clone()).unwrap()
}

/// Rank 1 of 2 by the rules of the family.
fn built_in(dir: &ModelDir) -> LoadPlan {
    let partition = Partition::for_config(dir.config().unwrap()).unwrap();
    dir.plan_for(&partition, &ranks(&json!({ "tp": "1/2" }))).unwrap()
}

/// The second stage, with rows only of what is cut and without the head.
fn rows_only(dir: &ModelDir) -> LoadPlan {
    let rules = json!({ "rules": [
        { "match": "lm_head.*", "tp": "skip" },
        { "match": "**.(q|k|v|gate|up)_proj.*", "tp": "col" },
        { "match": "**.embed_tokens.*", "pp": "first" },
    ] });
    let partition: Partition = serde_json::from_value(rules).unwrap();
    dir.plan_for(&partition, &ranks(&json!({ "tp": "1/2", "pp": "1/2" }))).unwrap()
}

fn assert_equal(found: &TensorStore, expected: &TensorStore) {
    assert!(found.names().eq(expected.names()));
    for (name, tensor) in expected.iter() {
        let found = found.get(name).unwrap();
        assert_eq!((found.dtype(), found.shape()), (tensor.dtype(), tensor.shape()), "{name}");
        assert_eq!(found.bytes(), tensor.bytes(), "{name}");
    }
}

#[test]
fn a_plan_with_strided_parts_is_not_mapped_and_the_error_names_one() {
    let (dir, name) = (llama(), "model.layers.0.mlp.down_proj.weight");
    let shard = dir.info(name).unwrap().shard();
    let file = modeldir_fixtures::model("llama").join(shard.path());
    // SAFETY: nothing writes to the shipped models while tests run.
    let error = unsafe { built_in(&dir).map() }.expect_err("columns are scattered");
    let expected = format!(
        "{}: tensor \"{name}\": the planned part lies in 64 runs, \
         which cannot be mapped as one (load gathers them)",
        file.display()
    );
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error.kind(), ErrorKind::ScatteredMap { runs: 64 }), "{error:?}");
    assert_eq!((error.path(), error.tensor()), (Some(&*file), Some(name)));
}

#[test]
fn what_a_rank_takes_is_the_same_loaded_read_and_mapped() {
    let dir = llama();
    let plan = rows_only(&dir);
    let store = plan.load().unwrap();
    // One of three layers, nine tensors, and the last norm.
    assert_eq!(store.len(), 9 + 1);
    assert!(store.names().eq(plan.names()));
    for left_out in
        ["lm_head.weight", "model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight"]
    {
        assert!(!store.contains(left_out), "{left_out}");
        let error = store.get(left_out).unwrap_err();
        assert_eq!(error.tensor(), Some(left_out), "{error}");
        let error = plan.only([left_out]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotPlanned), "{error}");
    }
    for count in [1, 2, 8] {
        let options = LoadOptions { threads: threads(count), ..LoadOptions::default() };
        let loaded = plan.load_with(&options).unwrap();
        assert_equal(&loaded, &store);
        assert_eq!(loaded.stats().bytes_read, plan.bytes_read());
    }
    // SAFETY: nothing writes to the shipped models while tests run.
    assert_equal(&unsafe { plan.map() }.unwrap(), &store);
    for (name, tensor) in store.iter() {
        let alone = plan.only([name]).unwrap().load().unwrap();
        assert_eq!(alone.len(), 1);
        assert_eq!(alone.get(name).unwrap().bytes(), tensor.bytes(), "{name}");
        let whole = dir.read(name).unwrap();
        assert!(
            whole.bytes().windows(tensor.byte_len()).any(|part| part == tensor.bytes()),
            "{name}"
        );
    }
}

#[test]
fn strided_parts_are_the_same_streamed_awaited_and_in_memory_of_the_callers() {
    let plan = built_in(&llama());
    let store = plan.load().unwrap();
    let (mut streamed, mut awaited) = (BTreeMap::new(), BTreeMap::new());
    for max in [NonZeroU64::new(64 << 10), None] {
        let options = LoadOptions { max_bytes_in_flight: max, ..LoadOptions::default() };
        let stats = plan.stream_with(&options, |tensor| {
            streamed.insert(tensor.name().to_owned(), tensor.bytes().to_vec());
            Ok(())
        });
        assert_eq!(stats.unwrap().bytes_read, plan.bytes_read());
    }
    Builder::new_current_thread().build().unwrap().block_on(async {
        let loaded = plan.load_async().await.unwrap();
        assert_equal(&loaded, &store);
        let mut stream = plan.stream_async();
        while let Some(tensor) = stream.next().await {
            let tensor = tensor.unwrap();
            awaited.insert(tensor.name().to_owned(), tensor.bytes().to_vec());
        }
    });
    let place = |(name, tensor): (&str, &Tensor)| (name.to_owned(), vec![0; tensor.byte_len()]);
    let mut places: BTreeMap<String, Vec<u8>> = store.iter().map(place).collect();
    let to = places.iter_mut().map(|(name, place)| (name, &mut place[..]));
    let stats = plan.load_into(to).unwrap();
    assert_eq!(stats.bytes_read, plan.bytes_read());
    let loaded = store.iter().map(|(name, tensor)| (name.to_owned(), tensor.bytes().to_vec()));
    let loaded: BTreeMap<String, Vec<u8>> = loaded.collect();
    for found in [streamed, awaited, places] {
        assert!(found == loaded);
    }
}

#[test]
fn narrowing_a_rank_keeps_its_parts() {
    let dir = llama();
    let plan = built_in(&dir);
    let store = plan.load().unwrap();
    let narrowed = plan.filter(|tensor| tensor.name().ends_with("down_proj.weight"));
    let found = narrowed.load().unwrap();
    assert_eq!(found.len(), 3);
    for (name, tensor) in found.iter() {
        assert_eq!(tensor.shape(), [64, 88]);
        assert_eq!(tensor.bytes(), store.get(name).unwrap().bytes(), "{name}");
    }
}

#[test]
fn a_rank_is_saved_as_a_directory_of_its_own() {
    let store = built_in(&llama()).load().unwrap();
    for (max_shard_bytes, files) in [(5_000_000_000, 1), (60_000, 4)] {
        let folder = tempfile::tempdir().unwrap();
        let options = SaveOptions { max_shard_bytes, ..SaveOptions::default() };
        let saved = store.save_with(folder.path(), &options).unwrap();
        assert_eq!(saved.byte_len, store.byte_len());
        assert!(saved.shards.len() >= files, "{:?}", saved.shards);
        let copy = ModelDir::open(folder.path()).unwrap();
        assert_equal(&copy.load().unwrap(), &store);
        assert_eq!(copy.shards().len(), saved.shards.len());
        let Some(index) = saved.index else {
            assert_eq!(saved.shards.len(), 1);
            continue;
        };
        let index: Value = serde_json::from_str(&fs::read_to_string(index).unwrap()).unwrap();
        assert_eq!(index["metadata"]["total_size"], store.byte_len());
        let weight_map = index["weight_map"].as_object().unwrap();
        assert!(weight_map.keys().map(String::as_str).eq(store.names()));
        for (name, shard) in weight_map {
            let of_copy = copy.info(name).unwrap().shard().path();
            assert_eq!(shard.as_str(), of_copy.to_str(), "{name}");
        }
    }
}

#[test]
fn directories_of_all_ranks_are_those_of_their_plans() {
    let dir = llama();
    let partition = Partition::for_config(dir.config().unwrap()).unwrap();
    let mut saved = 0;
    for rank in 0..4 {
        let plan = dir
            .plan_for(&partition, &Topology::tensor_parallel(Rank::new(rank, 4).unwrap()))
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = plan.load().unwrap();
        saved += store.save(folder.path()).unwrap().byte_len;
        assert_equal(&ModelDir::open(folder.path()).unwrap().load().unwrap(), &store);
    }
    // Seven norms of 64 elements are on all four ranks, everything else is on one.
    assert_eq!(saved, dir.byte_len() + 3 * 7 * 64 * 2);
}

#[test]
fn shards_and_their_order_change_nothing() {
    let rules = json!({ "uneven": "balanced", "rules": [
        { "match": "**.up.*", "tp": "col" }, { "match": "**.down.*", "tp": "row" },
    ] });
    let partition: Partition = serde_json::from_value(rules).unwrap();
    let names: Vec<_> = (0..4)
        .flat_map(|l| ["down", "norm", "up"].map(|leaf| format!("h.{l}.{leaf}.weight")))
        .collect();
    // Which of four shards holds a tensor: in turn, in runs, scattered.
    let arrangements: [fn(usize) -> usize; 3] = [|i| i % 4, |i| i / 3, |i| (7 * i + 2) % 12 / 3];
    for rank in 0..3 {
        let topology = Topology::tensor_parallel(Rank::new(rank, 3).unwrap());
        let load = |shard: &fn(usize) -> usize| {
            let folder = tempfile::tempdir().unwrap();
            let model = names.iter().enumerate().fold(ShardedModel::new(4), |model, (i, name)| {
                model.tensor(shard(i) + 1, Made::random(name, "F16", &[10, 14]))
            });
            model.write(folder.path()).unwrap();
            let dir = ModelDir::open(folder.path()).unwrap();
            dir.plan_for(&partition, &topology).unwrap().load().unwrap()
        };
        let [first, others @ ..] = &arrangements;
        let expected = load(first);
        assert_eq!(expected.len(), 12);
        for shard in others {
            assert_equal(&load(shard), &expected);
        }
    }
}
