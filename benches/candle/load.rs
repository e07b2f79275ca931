//! Loading a model from the page cache into owned memory, beside candle itself: as its users run it,
//! on one thread, and on a thread per core. All are found to hold the same bytes first.

use std::path::{Path, PathBuf};

use candle_core::safetensors::{self, MmapedSafetensors};
use candle_core::{CpuStorage, Device, Storage, Tensor};
use modeldir::half::bf16;
use modeldir::half::slice::HalfFloatSliceExt;
use modeldir::{ModelDir, TensorStore};
use modeldir_benches::{Contestant, llama, pretouch, race, warm};
use rayon::prelude::*;

/// Length of the model, unless the first argument that is a number says another one.
const MIB: u64 = 4096;

const SHARDS: usize = 8;

const ROUNDS: usize = 9;

/// Tensors with their names.
type Named = Vec<(String, Tensor)>;

fn main() {
    let mib = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(MIB);
    let dir = llama(mib << 20, SHARDS);
    let model = ModelDir::open(&dir).expect("a valid model");
    let shards: Vec<PathBuf> = model.shards().iter().map(|shard| dir.join(shard.path())).collect();
    let names: Vec<String> = model.names().map(str::to_owned).collect();
    let bytes = model.byte_len();
    drop(model);
    warm(&dir);

    let mapped_1 = || mapped(&shards, |map| names.iter().map(|name| tensor(map, name)).collect());
    let mapped_n =
        || mapped(&shards, |map| names.par_iter().map(|name| tensor(map, name)).collect());
    let read_1 = || shards.iter().flat_map(read).collect::<Named>();
    assert_same(&load(&dir), mapped_1());
    assert_same(&load(&dir), mapped_n());
    assert_same(&load(&dir), read_1());
    println!("{} tensors are equal", names.len());

    let before = || pretouch(bytes + bytes / 3);
    let contestants = vec![
        Contestant::new("open + load", || load(&dir)).prepared(before),
        Contestant::new("candle, mapped, 1 thread", mapped_1).prepared(before),
        Contestant::new("candle, mapped, thread per core", mapped_n).prepared(before),
        Contestant::new("candle, safetensors::load, 1 thread", read_1).prepared(before),
    ];
    race(&format!("load {mib} MiB in {SHARDS} shards, hot"), ROUNDS, bytes, contestants);
}

fn load(dir: &Path) -> TensorStore {
    let model = ModelDir::open(dir).expect("a valid model");
    model.plan().load().expect("a readable model")
}

/// Maps the shards and loads from there.
fn mapped(shards: &[PathBuf], load: impl FnOnce(&MmapedSafetensors) -> Named) -> Named {
    // SAFETY: nothing writes to the bench's own files while it runs.
    let map = unsafe { MmapedSafetensors::multi(shards) }.expect("valid shards");
    load(&map)
}

fn tensor(map: &MmapedSafetensors, name: &str) -> (String, Tensor) {
    (name.to_owned(), map.load(name, &Device::Cpu).expect("a tensor of the model"))
}

/// Reads a shard whole, then makes tensors of it.
fn read(shard: &PathBuf) -> Named {
    safetensors::load(shard, &Device::Cpu).expect("a valid shard").into_iter().collect()
}

/// Panics unless both hold the same tensors of `BF16`, which is all that the bench's model has.
fn assert_same(ours: &TensorStore, mut theirs: Named) {
    theirs.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert_eq!(ours.len(), theirs.len());
    for ((name, ours), (their_name, theirs)) in ours.iter().zip(&theirs) {
        assert_eq!(name, their_name);
        assert_eq!(ours.shape(), theirs.dims(), "{name}");
        let (storage, layout) = theirs.storage_and_layout();
        let Storage::Cpu(CpuStorage::BF16(values)) = &*storage else {
            panic!("{name}: not BF16 in memory")
        };
        let (start, end) = layout.contiguous_offsets().expect("loaded tensors are contiguous");
        let ours: &[bf16] = ours.as_slice().expect("a tensor of BF16");
        // As bits: not every number is equal to itself.
        let (ours, theirs): (&[u16], &[u16]) =
            (ours.reinterpret_cast(), values[start..end].reinterpret_cast());
        assert!(ours == theirs, "{name}: other bytes");
    }
}
