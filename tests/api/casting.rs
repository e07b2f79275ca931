//! Tensors that are converted to another float type as they are read: the same in every way.

use std::collections::BTreeMap;
use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use modeldir::options::Io;
use modeldir::plan::Stays;
use modeldir::tensorfile::FloatCast;
use modeldir::{
    Cancel, Dtype, ErrorKind, Float, LoadOptions, LoadPlan, ModelDir, Progress, Selection, Tensor,
};
use modeldir_fixtures::{ShardedModel, Tensor as Made};
use tempfile::TempDir;

use crate::loading::{threads, written};
use crate::reading::forget;

pub(crate) const FLOATS: [Float; 3] = [Float::F16, Float::BF16, Float::F32];

/// The dtype and the bytes of a stored tensor after a conversion, element by element.
pub(crate) fn converted(dtype: Dtype, bytes: &[u8], to: Float) -> (Dtype, Vec<u8>) {
    let Some(cast) = FloatCast::new(dtype, to) else { return (dtype, bytes.to_vec()) };
    let mut after = vec![0; bytes.len() / cast.source().byte_len() * to.byte_len()];
    cast.convert(bytes, &mut after);
    (to.dtype(), after)
}

/// A model on a disk, of which one tensor is longer than a read, and all lie at odd offsets.
fn on_disk() -> (TempDir, Vec<Made>) {
    let made = vec![
        Made::random("odd", "U8", &[3]),
        Made::random("odder", "I8", &[5]),
        Made::random("long", "F32", &[2_200_001]),
        Made::random("wide", "BF16", &[300, 4096]),
        Made::random("next", "F32", &[7, 3]),
        Made::random("short", "F16", &[101]),
        Made::random("whole", "I64", &[9]),
        Made::random("double", "F64", &[11]),
        Made::random("none", "BF16", &[0, 7]),
    ];
    let shard = |i| 1 + i % 2;
    let model = made.iter().enumerate();
    let model =
        model.fold(ShardedModel::new(2), |m, (i, tensor)| m.tensor(shard(i), tensor.clone()));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    model.write(folder.path()).unwrap();
    (folder, made)
}

/// What a tensor is after the cast of a plan, by name.
fn expected(made: &[Made], to: Float) -> BTreeMap<String, (Dtype, Vec<u8>)> {
    let after = |tensor: &Made| {
        let dtype = Dtype::from_name(&tensor.dtype).unwrap();
        (tensor.name.clone(), converted(dtype, &tensor.data, to))
    };
    made.iter().map(after).collect()
}

fn assert_is(tensor: &Tensor, expected: &BTreeMap<String, (Dtype, Vec<u8>)>, what: &str) {
    let (dtype, bytes) = &expected[tensor.name()];
    assert_eq!(tensor.dtype(), *dtype, "{} {what}", tensor.name());
    assert!(tensor.bytes() == bytes, "{} {what}", tensor.name());
    let align = dtype.align();
    assert_eq!(tensor.bytes().as_ptr().align_offset(align), 0, "{} {what}", tensor.name());
}

/// Lets the page cache hold every other piece of a model and no more, where it can.
fn half_forget(model: &ModelDir) {
    forget(model);
    let mut piece = vec![0; 1 << 20];
    for shard in model.shards() {
        let file = File::open(model.path().join(shard.path())).unwrap();
        for offset in (0..16 << 20).step_by(2 << 20) {
            file.read_at(&mut piece, offset).unwrap();
        }
    }
}

#[test]
fn every_way_converts_alike_cached_or_not() {
    let (folder, made) = on_disk();
    let model = ModelDir::open(folder.path()).unwrap();
    let prepare: [fn(&ModelDir); 3] = [|_| {}, forget, half_forget];
    let ways = [(Io::Auto, 3), (Io::Buffered, 1), (Io::Direct, 2)];
    for to in FLOATS {
        let (plan, expected) = (model.plan().cast(to), expected(&made, to));
        let ways = if to == Float::BF16 { &ways[..] } else { &ways[..1] };
        for (io, count) in ways.iter().copied() {
            for (state, prepare) in prepare.iter().enumerate() {
                prepare(&model);
                let options = LoadOptions { io, threads: threads(count), ..LoadOptions::default() };
                let store = plan.load_with(&options).unwrap();
                assert_eq!(store.len(), made.len());
                for (_, tensor) in store.iter() {
                    assert_is(tensor, &expected, &format!("to {to:?}, {io:?}, state {state}"));
                }
                let stats = store.stats();
                assert_eq!(stats.bytes_read, model.byte_len(), "{io:?}");
                assert!(io != Io::Buffered || stats.bytes_direct == 0, "{stats:?}");
                assert_eq!(store.byte_len(), plan.bytes_selected());
                // There was no memory for tensors but that of the plan.
                assert_eq!(store.into_memory().byte_len(), plan.memory_bytes());
            }
        }
    }
}

#[test]
fn streams_and_memory_of_others_hold_what_a_load_holds() {
    let (folder, made) = on_disk();
    let model = ModelDir::open(folder.path()).unwrap();
    for to in FLOATS {
        let (plan, expected) = (model.plan().cast(to), expected(&made, to));
        let old = model.plan().load().unwrap().into_memory();
        let store = plan.load_reusing(old).unwrap();
        store.iter().for_each(|(_, tensor)| assert_is(tensor, &expected, "reused"));

        let max_bytes_in_flight = NonZeroU64::new(10 << 20);
        let mut taken = 0;
        let stats =
            plan.stream_with(&LoadOptions { max_bytes_in_flight, ..Default::default() }, |t| {
                assert_is(&t, &expected, "streamed");
                taken += 1;
                Ok(())
            });
        assert_eq!((taken, stats.unwrap().bytes_read), (made.len(), model.byte_len()));

        for (io, shift) in [(Io::Auto, 0), (Io::Auto, 1), (Io::Direct, 3)] {
            forget(&model);
            let mut places: Vec<_> = plan
                .planned()
                .map(|planned| (planned.name(), vec![0xee; planned.byte_len() + shift]))
                .collect();
            let named = places.iter_mut().map(|(name, place)| (*name, &mut place[shift..]));
            let stats = plan.load_into_with(named, &LoadOptions { io, ..LoadOptions::default() });
            assert_eq!(stats.unwrap().bytes_read, model.byte_len());
            for (name, place) in places {
                assert!(place[shift..] == expected[name].1, "{name} {io:?} {shift}");
                assert!(place[..shift].iter().all(|byte| *byte == 0xee));
            }
        }
    }
}

#[test]
fn async_code_gets_the_same() {
    let (folder, made) = on_disk();
    let plan = ModelDir::open(folder.path()).unwrap().plan().cast(Float::BF16);
    let expected = expected(&made, Float::BF16);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = plan.load_async().await.unwrap();
        store.iter().for_each(|(_, tensor)| assert_is(tensor, &expected, "loaded"));
        let (mut stream, mut taken) = (plan.stream_async(), 0);
        while let Some(tensor) = stream.try_next().await.unwrap() {
            assert_is(&tensor, &expected, "streamed");
            taken += 1;
        }
        assert_eq!(taken, made.len());
    });
}

#[test]
fn parts_of_rows_are_converted_in_every_way() {
    let (folder, made) = on_disk();
    let model = ModelDir::open(folder.path()).unwrap();
    let wide = made.iter().find(|tensor| tensor.name == "wide").unwrap();
    for columns in [1000..3000, 7..8] {
        let rows = wide.data.chunks(4096 * 2);
        let rows = rows.map(|row| &row[columns.start * 2..columns.end * 2]).collect::<Vec<_>>();
        let (_, wanted) = converted(Dtype::BF16, &rows.concat(), Float::F32);
        let part = Selection::all().with_range(1, columns);
        let plan = model.plan().cast(Float::F32).only(["wide"]).unwrap();
        let plan = plan.select(|_| Some(part.clone())).unwrap();
        for io in [Io::Auto, Io::Buffered, Io::Direct] {
            forget(&model);
            let store = plan.load_with(&LoadOptions { io, ..LoadOptions::default() }).unwrap();
            let tensor = store.get("wide").unwrap();
            assert!(tensor.bytes() == wanted, "{io:?}");
            assert_eq!(tensor.dtype(), Dtype::F32);
            assert_eq!(store.stats().bytes_read, plan.bytes_read(), "{io:?}");
        }
    }
}

#[test]
fn a_mapped_plan_cannot_be_cast() {
    let (folder, _) = on_disk();
    let plan = ModelDir::open(folder.path()).unwrap().plan().cast(Float::F32);
    let map = |plan: &LoadPlan| {
        // SAFETY: nothing writes to the folder of this test.
        #[expect(unsafe_code, reason = "mapping is what is tested")]
        unsafe {
            plan.map()
        }
    };
    let error = map(&plan.only(["wide", "whole"]).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::CastMap { .. }), "{error}");
    assert_eq!(error.tensor(), Some("wide"));
    assert!(error.to_string().ends_with(
        r#"tensor "wide": planned as F32, but mapped tensors stay BF16 (load converts them)"#
    ));
    // What no cast applies to stays what it is.
    let store = map(&plan.only(["long", "whole", "double"]).unwrap()).unwrap();
    assert_eq!(store.get("long").unwrap().dtype(), Dtype::F32);
}

#[test]
fn a_cast_stays_with_its_tensors_until_another_one() {
    let (folder, _) = on_disk();
    let all = ModelDir::open(folder.path()).unwrap().plan();
    let dtype = |plan: &LoadPlan, name: &str| plan.get(name).unwrap().dtype();
    let plan = all.cast(Float::F16).cast_where(Float::F32, |t| t.name() == "wide");
    let rows = Selection::all().with_range(0, 0..2);
    for plan in [
        plan.clone(),
        plan.filter(|tensor| tensor.name() != "none"),
        plan.only(["long", "wide", "whole", "next", "short"]).unwrap(),
        plan.select(|tensor| (tensor.shape() != [0, 7]).then(|| rows.clone())).unwrap(),
    ] {
        let dtypes = ["long", "wide", "whole", "next", "short"].map(|name| dtype(&plan, name));
        assert_eq!(dtypes, [Dtype::F16, Dtype::F32, Dtype::I64, Dtype::F16, Dtype::F16]);
    }
    let wide = plan.get("wide").unwrap();
    assert_eq!((wide.stored().dtype(), wide.shape()), (Dtype::BF16, &[300, 4096][..]));
    assert_eq!(
        (wide.byte_len(), wide.cast()),
        (300 * 4096 * 4, FloatCast::new(Dtype::BF16, Float::F32))
    );
    // From what is stored, not from what an earlier cast has made of it.
    let again = plan.cast(Float::BF16);
    assert_eq!((dtype(&again, "wide"), again.get("wide").unwrap().cast()), (Dtype::BF16, None));
    assert_eq!(dtype(&again, "long"), Dtype::BF16);
    assert!(plan.get("absent").is_err());
    let odd = plan.only(["odd"]).unwrap();
    let error = odd.get("wide").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotPlanned), "{error}");
}

#[test]
fn a_plan_says_both_dtypes() {
    let (folder, _) = on_disk();
    let all = ModelDir::open(folder.path()).unwrap().plan();
    let plan = all.only(["short", "whole"]).unwrap().cast(Float::F32);
    assert_eq!((plan.bytes_selected(), plan.bytes_read()), (404 + 72, 202 + 72));
    let value = serde_json::to_value(&plan).unwrap();
    let tensors = &value["tensors"];
    assert_eq!((&tensors[0]["dtype"], &tensors[0]["stored_dtype"]), (&"F32".into(), &"F16".into()));
    assert_eq!((&tensors[1]["dtype"], tensors[1].get("stored_dtype")), (&"I64".into(), None));
    let casts: Vec<_> =
        value["requests"].as_array().unwrap().iter().map(|r| &r["transform"]["cast"]).collect();
    assert!(casts.contains(&&serde_json::json!({"source": "F16", "target": "F32"})), "{casts:?}");
    let end = "2 tensors, 476 bytes, 2 reads of 274 bytes\n1 of I64 stay: not converted";
    assert!(plan.to_string().ends_with(end), "{plan}");
}

/// A model of 8-bit floats with scales, and of packed integers with scales and zero points.
fn quantized() -> TempDir {
    let tensors = [
        ("a.weight", "F8_E4M3", vec![256, 128]),
        ("a.weight_scale_inv", "F32", vec![2, 1]),
        ("a.bias", "F32", vec![256]),
        ("b.qweight", "I32", vec![16, 8]),
        ("b.scales", "F16", vec![1, 8]),
        ("b.qzeros", "I32", vec![1, 1]),
        ("norm.weight", "F32", vec![256]),
        ("other.weight", "BF16", vec![4]),
    ];
    let model = tensors.iter().fold(ShardedModel::new(1), |model, (name, dtype, shape)| {
        model.tensor(1, Made::random(name, dtype, shape))
    });
    written(&model)
}

#[test]
fn companions_of_quantized_weights_keep_their_type_in_every_way_of_loading() {
    let folder = quantized();
    let model = ModelDir::open(folder.path()).unwrap();
    let plan = model.plan().cast(Float::BF16);
    let stays = |name| plan.get(name).unwrap().stays();
    for name in ["a.weight_scale_inv", "b.scales"] {
        assert_eq!(stays(name), Some(Stays::Companion), "{name}");
    }
    for name in ["a.weight", "b.qweight", "b.qzeros"] {
        assert_eq!(stays(name), Some(Stays::Dtype), "{name}");
    }
    for name in ["a.bias", "norm.weight", "other.weight"] {
        assert_eq!((stays(name), plan.get(name).unwrap().dtype()), (None, Dtype::BF16), "{name}");
    }
    let store = plan.load().unwrap();
    plan.stream(|tensor| {
        assert_eq!(tensor.bytes(), store.get(tensor.name())?.bytes(), "{}", tensor.name());
        Ok(())
    })
    .unwrap();
    for name in ["a.weight", "a.weight_scale_inv", "b.qweight", "b.scales", "b.qzeros"] {
        let (tensor, stored) = (store.get(name).unwrap(), model.read(name).unwrap());
        assert_eq!((tensor.dtype(), tensor.bytes()), (stored.dtype(), stored.bytes()), "{name}");
    }
    // A choice by anything but the name leaves them out too.
    let chosen = model.plan().cast_where(Float::BF16, |tensor| tensor.shape().len() == 2);
    assert_eq!(chosen.get("a.weight_scale_inv").unwrap().stays(), Some(Stays::Companion));
    assert_eq!(chosen.get("norm.weight").unwrap().stays(), None);
    // A plan keeps what it says when it is narrowed.
    let half = plan.select(|_| Some(Selection::all())).unwrap().only(["b.scales"]).unwrap();
    assert_eq!(half.get("b.scales").unwrap().stays(), Some(Stays::Companion));
}

#[test]
fn a_plan_says_what_stays_and_why() {
    let folder = quantized();
    let plan = ModelDir::open(folder.path()).unwrap().plan();
    assert!(!plan.to_string().contains("stay"), "no cast, nothing to say: {plan}");
    let cast = plan.cast(Float::BF16);
    let shown = cast.to_string();
    let end = "\n1 of F8_E4M3 stay: not converted\n1 of F16 stay: companions of quantized weights\n\
               2 of I32 stay: not converted\n1 of F32 stay: companions of quantized weights";
    assert!(shown.ends_with(end), "{shown}");
    let value = serde_json::to_value(&cast).unwrap();
    let stays = value["tensors"].as_array().unwrap().iter();
    let stays: Vec<_> =
        stays.map(|tensor| tensor.get("stays").and_then(|it| it.as_str())).collect();
    let (dtype, companion) = (Some("dtype"), Some("companion"));
    assert_eq!(stays, [None, dtype, companion, dtype, dtype, companion, None, None]);
    let again = cast.cast(Float::F32).get("a.weight_scale_inv").unwrap().stays();
    assert_eq!(again, None, "it has that type");
}

#[test]
fn companions_are_converted_by_name() {
    let folder = quantized();
    let model = ModelDir::open(folder.path()).unwrap();
    let plan = model.plan().cast_named(Float::BF16, ["a.weight_scale_inv", "b.qzeros"]).unwrap();
    let scales = plan.get("a.weight_scale_inv").unwrap();
    assert_eq!((scales.dtype(), scales.stays()), (Dtype::BF16, None));
    assert_eq!(plan.get("b.qzeros").unwrap().stays(), Some(Stays::Dtype));
    assert_eq!(plan.get("norm.weight").unwrap().cast(), None);
    // A cast of all leaves what was asked for by name.
    let all = plan.cast(Float::F16);
    assert_eq!(all.get("a.weight_scale_inv").unwrap().dtype(), Dtype::BF16);
    let stored = model.read("a.weight_scale_inv").unwrap();
    let expected = converted(Dtype::F32, stored.bytes(), Float::BF16);
    let store = plan.load().unwrap();
    let loaded = store.get("a.weight_scale_inv").unwrap();
    assert_eq!((loaded.dtype(), loaded.bytes()), (expected.0, &expected.1[..]));
    let error = model.plan().cast_named(Float::F16, ["a.wieght"]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TensorNotFound { .. }), "{error}");
    let rest = model.plan().only(["a.bias"]).unwrap();
    let error = rest.cast_named(Float::F16, ["norm.weight"]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotPlanned), "{error}");
}

#[test]
fn an_alias_is_what_its_target_is() {
    let model = ModelDir::open(modeldir_fixtures::model("gpt2")).unwrap();
    let plan = model.plan().cast(Float::BF16);
    assert_eq!(plan.get("lm_head.weight").unwrap().dtype(), Dtype::BF16);
    let store = plan.load().unwrap();
    let stored = model.read("transformer.wte.weight").unwrap();
    let (dtype, bytes) = converted(stored.dtype(), stored.bytes(), Float::BF16);
    let tied = store.get("lm_head.weight").unwrap();
    assert_eq!((tied.dtype(), tied.bytes()), (dtype, &bytes[..]));
}

#[test]
fn progress_counts_bytes_of_the_files_and_a_cancelled_cast_ends() {
    let (folder, _) = on_disk();
    let plan = ModelDir::open(folder.path()).unwrap().plan().cast(Float::BF16);
    let (last, cancel) = (Arc::new(AtomicU64::new(0)), Cancel::default());
    let (said, total) = (Arc::clone(&last), plan.bytes_read());
    let tell = move |progress: Progress| {
        assert_eq!(progress.bytes_total, total);
        assert!(said.swap(progress.bytes_done, Ordering::Relaxed) <= progress.bytes_done);
    };
    plan.load_with(&LoadOptions { progress: Some(Arc::new(tell)), ..LoadOptions::default() })
        .unwrap();
    assert_eq!(last.load(Ordering::Relaxed), plan.bytes_read());
    cancel.cancel();
    let ended = plan.load_with(&LoadOptions { cancel: Some(cancel), ..LoadOptions::default() });
    assert!(
        matches!(&ended, Err(error) if matches!(error.kind(), ErrorKind::Cancelled)),
        "{ended:?}"
    );
}

#[test]
fn a_shard_that_was_cut_short_is_an_error_and_no_tensor() {
    let folder = written(&ShardedModel::new(1).tensor(1, Made::random("w", "BF16", &[5000])));
    let plan = ModelDir::open(folder.path()).unwrap().plan().cast(Float::F32);
    let path = folder.path().join(modeldir_fixtures::shard_name(1, 1));
    let len = std::fs::metadata(&path).unwrap().len();
    File::options().write(true).open(&path).unwrap().set_len(len - 1).unwrap();
    let error = plan.load().unwrap_err();
    assert_eq!(error.path(), Some(&*path), "{error}");
}
