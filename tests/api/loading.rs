//! Plans and loads: what is chosen, how many threads, progress, and the store that comes of it.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use modeldir::{ErrorKind, LoadOptions, LoadPlan, ModelDir, Progress, Tensor};
use modeldir_fixtures::{ShardedModel, Tensor as Made};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use tempfile::TempDir;

/// A number of threads to ask for.
pub(crate) fn threads(count: usize) -> Option<NonZeroUsize> {
    NonZeroUsize::new(count)
}

/// Writes a model to a folder of its own.
pub(crate) fn written(model: &ShardedModel) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    model.write(folder.path()).unwrap();
    folder
}

/// Two shards with eight experts and a gate.
fn experts() -> ShardedModel {
    let mut model = ShardedModel::new(2).tensor(1, Made::random("gate", "U8", &[16]));
    for expert in 0..8 {
        let shard = 1 + expert % 2;
        model = model.tensor(shard, Made::random(&format!("experts.{expert}.up"), "U8", &[64]));
    }
    model
}

#[test]
fn a_filter_reads_its_bytes_and_no_others_whatever_the_threads() {
    let folder = written(&experts());
    let model = ModelDir::open(folder.path()).unwrap();
    let kept = ["experts.1.up", "experts.3.up", "gate"];
    let filtered = model.plan().filter(|tensor| kept.contains(&tensor.name()));
    let only = model.plan().only(kept).unwrap();
    for plan in [filtered, only] {
        assert!(plan.names().eq(kept));
        assert_eq!((plan.len(), plan.bytes_selected(), plan.bytes_read()), (3, 144, 144));
        for count in [1, 2, 8] {
            let options = LoadOptions { threads: threads(count), ..LoadOptions::default() };
            let store = plan.load_with(&options).unwrap();
            assert!(store.names().eq(kept));
            assert_eq!((store.byte_len(), store.stats().bytes_read), (144, 144));
        }
    }
}

#[test]
fn a_name_that_is_not_there_is_refused_by_the_plan() {
    let folder = written(&experts());
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let error = plan.only(["gate", "experts.9.up"]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TensorNotFound { .. }), "{error}");
    assert_eq!(error.tensor(), Some("experts.9.up"));
    let narrowed = plan.only(["gate"]).unwrap();
    assert!(narrowed.only(["experts.1.up"]).is_err());
    assert!(narrowed.filter(|tensor| tensor.name() != "gate").is_empty());
}

#[test]
fn an_empty_plan_loads_to_an_empty_store() {
    let folder = written(&experts());
    let plan = ModelDir::open(folder.path()).unwrap().plan().filter(|_| false);
    let store = plan.load().unwrap();
    assert!(store.is_empty());
    assert_eq!((plan.requests().len(), store.byte_len(), store.stats().bytes_read), (0, 0, 0));
}

/// A plan of very many small requests: every second tensor, so that no two lie together.
fn scattered() -> (TempDir, LoadPlan) {
    let mut model = ShardedModel::new(4);
    for i in 0..800 {
        model = model.tensor(1 + i % 4, Made::random(&format!("t{i:03}"), "U8", &[96]));
    }
    let folder = written(&model);
    let number = |name: &str| name[1..].parse::<usize>().unwrap();
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let plan = plan.filter(|tensor| number(tensor.name()) / 4 % 2 == 0);
    assert_eq!((plan.len(), plan.requests().len()), (400, 400));
    (folder, plan)
}

#[test]
fn progress_never_falls_and_its_last_call_alone_tells_all_bytes() {
    let (_folder, plan) = scattered();
    let total = plan.bytes_read();
    for count in [1, 4, 8].repeat(40) {
        let (entered, calls) = (AtomicUsize::new(0), Arc::new(Mutex::new(Vec::new())));
        let said = Arc::clone(&calls);
        let tell = move |progress: Progress| {
            assert_eq!(progress.bytes_total, total);
            let before = entered.fetch_add(1, Ordering::Relaxed) + 1;
            // Another thread that may overtake this call has the time for it.
            let mut patience = if progress.bytes_done < total { 2000 } else { 0 };
            while patience > 0 && entered.load(Ordering::Relaxed) == before {
                patience -= 1;
                thread::yield_now();
            }
            said.lock().unwrap().push(progress.bytes_done);
        };
        let options = LoadOptions {
            threads: threads(count),
            progress: Some(Arc::new(tell)),
            ..LoadOptions::default()
        };
        assert_eq!(plan.load_with(&options).unwrap().stats().bytes_read, total);
        let calls = calls.lock().unwrap();
        assert!(calls.is_sorted(), "{count} threads: {calls:?}");
        assert_eq!(calls.last(), Some(&total), "{count} threads: {calls:?}");
        let ends = calls.iter().filter(|done| **done == total).count();
        assert_eq!(ends, 1, "{count} threads: {calls:?}");
    }
}

#[test]
fn a_tensor_longer_than_a_read_comes_whole() {
    let long = Made::random("long", "F32", &[5, 1 << 20]);
    let files = ShardedModel::new(1)
        .tensor(1, Made::random("odd", "U8", &[3]))
        .tensor(1, long.clone())
        .tensor(1, Made::random("tail", "F64", &[1 << 18]));
    let folder = written(&files);
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    assert!(plan.requests().len() > 2, "{plan}");
    for count in [1, 2, 8] {
        let options = LoadOptions { threads: threads(count), ..LoadOptions::default() };
        let store = plan.load_with(&options).unwrap();
        let tensor = store.get("long").unwrap();
        assert!(tensor.bytes() == long.data, "{count} threads");
        // Three bytes before it in the file, and aligned in memory all the same.
        assert_eq!(tensor.as_slice::<f32>().unwrap().len(), 5 << 20);
    }
}

#[test]
fn tensors_outlive_store_plan_model_and_files() {
    let folder = written(&experts());
    let mut store = ModelDir::open(folder.path()).unwrap().load().unwrap();
    let (gate, wanted) = (store.remove("gate").unwrap(), Made::random("gate", "U8", &[16]));
    assert!(store.get("gate").is_err());
    assert_eq!(store.len(), 8);
    drop(store);
    drop(folder);
    assert_eq!(gate.bytes(), wanted.data);
}

#[test]
fn a_store_is_gone_through_by_name_borrowed_and_owned() {
    let folder = written(&experts());
    let store = ModelDir::open(folder.path()).unwrap().load().unwrap();
    assert_eq!((store.iter().len(), store.names().len()), (store.len(), store.len()));
    let mut names = Vec::new();
    for (name, tensor) in &store {
        assert_eq!(name, tensor.name());
        names.push(name.to_owned());
    }
    assert!(store.names().eq(&names) && names.is_sorted());
    let tensors = store.into_iter();
    assert_eq!(tensors.len(), names.len());
    let owned: HashMap<String, Tensor> = tensors.collect();
    assert!(names.iter().all(|name| owned[name].name() == name));
}

#[test]
fn a_plan_is_plain_data() {
    let folder = written(&experts());
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    let value = serde_json::to_value(&plan).unwrap();
    assert_eq!(value["requests"].as_array().unwrap().len(), plan.requests().len());
    assert_eq!(value["tensors"].as_array().unwrap().len(), 9);
    assert!(plan.to_string().contains("9 tensors, 528 bytes"), "{plan}");
    let stats = plan.load().unwrap().stats();
    let said = serde_json::to_value(stats).unwrap();
    let seconds = json!(stats.elapsed.as_secs_f64());
    assert_eq!((&said["bytes_read"], &said["seconds"]), (&json!(528), &seconds));
    let again = ModelDir::open(folder.path()).unwrap().plan();
    assert_eq!(serde_json::to_value(&again).unwrap(), value);
}

/// Tensors for shards: dtypes of every width, so that some lie where their dtype is not aligned.
fn layouts() -> impl Strategy<Value = Vec<(usize, &'static str, Vec<usize>)>> {
    let dtype = select(&["U8", "F16", "F32", "F64", "BOOL", "C64", "F8_E4M3"][..]);
    vec((1_usize..4, dtype, vec(0_usize..40, 0..3)), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_layout_loads_with_its_bytes_aligned(
        layout in layouts(),
        count in 1_usize..5,
        keep in any::<u16>(),
    ) {
        let mut files = ShardedModel::new(3);
        let mut made = Vec::new();
        for (i, (shard, dtype, shape)) in layout.into_iter().enumerate() {
            let tensor = Made::random(&format!("t{i}"), dtype, &shape);
            files = files.tensor(shard, tensor.clone());
            made.push(tensor);
        }
        let folder = written(&files);
        let model = ModelDir::open(folder.path()).unwrap();
        let kept = |name: &str| keep >> name[1..].parse::<u16>().unwrap() & 1 == 1;
        let plan = model.plan().filter(|tensor| kept(tensor.name()));
        let options = LoadOptions { threads: threads(count), ..LoadOptions::default() };
        let store = plan.load_with(&options).unwrap();
        let wanted: Vec<_> = made.iter().filter(|tensor| kept(&tensor.name)).collect();
        prop_assert_eq!(store.len(), wanted.len());
        let byte_len: usize = wanted.iter().map(|tensor| tensor.byte_len()).sum();
        prop_assert_eq!(store.stats().bytes_read, byte_len as u64);
        for tensor in wanted {
            let loaded = store.get(&tensor.name).unwrap();
            prop_assert_eq!(loaded.bytes(), tensor.data.as_slice());
            let align = loaded.dtype().align();
            prop_assert_eq!(loaded.bytes().as_ptr().align_offset(align), 0);
        }
    }
}
