//! Loading from the page cache into owned memory: 4 GiB of a few large tensors and 1 GiB of 20,000
//! small ones, beside the way of candle, which maps each shard and copies tensor by tensor, and
//! beside reads and copies without any tensors; and converted on the way, beside converting after.
//! Names of parts after `--` leave out the others: `large`, `reload`, `small`, `cast`.

use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use modeldir::tensorfile::FloatCast;
use modeldir::{Float, ModelDir, Tensor, TensorStore};
use modeldir_benches::{
    Contestant, copy, is_wanted, llama, pretouch, race, read_into_huge_pages, small_tensors, warm,
};
use rayon::prelude::*;
use safetensors::SafeTensors;

/// Maps a shard and copies every tensor of it into a vector of its own.
fn copy_shard(path: &PathBuf) -> Vec<(String, Vec<u8>)> {
    let file = File::open(path).expect("a shard");
    // SAFETY: nothing writes to the bench's own files while it runs.
    let map = unsafe { Mmap::map(&file) }.expect("a shard");
    let tensors = SafeTensors::deserialize(&map).expect("a valid shard");
    tensors.iter().map(|(name, view)| (name.to_owned(), view.data().to_vec())).collect()
}

fn shards(dir: &Path) -> Vec<PathBuf> {
    let model = ModelDir::open(dir).expect("a valid model");
    model.shards().iter().map(|shard| dir.join(shard.path())).collect()
}

fn main() {
    let parts: [(&str, fn()); 4] =
        [("large", large), ("reload", reload), ("small", small), ("cast", cast)];
    for (name, part) in parts {
        if is_wanted(name) {
            part();
        }
    }
}

/// A few large tensors.
fn large() {
    let dir = llama(4 << 30, 8);
    let shards = shards(&dir);
    let bytes = ModelDir::open(&dir).expect("a valid model").byte_len();
    warm(&dir);
    let before = || pretouch(bytes + bytes / 3);
    let floor = |threads| read_into_huge_pages(&shards, threads).expect("readable shards");
    let contestants = vec![
        Contestant::new("open + load", || load(&dir)).prepared(before),
        Contestant::new("mmap + copy per tensor, 1 thread", || {
            shards.iter().flat_map(copy_shard).collect::<Vec<_>>()
        })
        .prepared(before),
        Contestant::new("mmap + copy per tensor, thread per core", || {
            shards.par_iter().flat_map_iter(copy_shard).collect::<Vec<_>>()
        })
        .prepared(before),
        Contestant::new("fs::read, thread per core", || {
            shards.par_iter().map(|path| std::fs::read(path).expect("a shard")).collect::<Vec<_>>()
        })
        .prepared(before),
        Contestant::new("read into huge pages, 2 threads", || floor(2)).prepared(before),
        Contestant::new("read into huge pages, 4 threads", || floor(4)).prepared(before),
    ];
    race("load 4 GiB in 8 shards, hot", 9, bytes, contestants);
}

/// Into memory that is in use already.
fn reload() {
    let dir = llama(2 << 30, 8);
    let bytes = ModelDir::open(&dir).expect("a valid model").byte_len();
    warm(&dir);
    let mut memory = load(&dir).into_memory();
    let len = usize::try_from(bytes).expect("a bench fits in memory");
    let (from, mut to) = (vec![1; len], vec![2; len]);
    let contestants = vec![
        Contestant::new("open + load into reused memory", || {
            let plan = ModelDir::open(&dir).expect("a valid model").plan();
            let reused = std::mem::take(&mut memory);
            let store = plan.load_reusing(reused);
            memory = store.expect("a readable model").into_memory();
        }),
        Contestant::new("copy of resident memory, 2 threads", || copy(&from, &mut to, 2)),
    ];
    race("load 2 GiB again, hot", 9, bytes, contestants);
}

/// Many small tensors.
fn small() {
    let dir = small_tensors(20_000, 1 << 30, 4);
    let shards = shards(&dir);
    let bytes = ModelDir::open(&dir).expect("a valid model").byte_len();
    warm(&dir);
    let before = || pretouch(bytes + bytes / 3);
    let contestants = vec![
        Contestant::new("open + load", || load(&dir)).prepared(before),
        Contestant::new("read into huge pages, 1 thread", || {
            read_into_huge_pages(&shards, 1).expect("readable shards")
        })
        .prepared(before),
        Contestant::new("mmap + copy per tensor, 1 thread", || {
            shards.iter().flat_map(copy_shard).collect::<Vec<_>>()
        })
        .prepared(before),
    ];
    race("load 1 GiB of 20,000 tensors, hot", 9, bytes, contestants);
}

/// Floats that become others.
fn cast() {
    let dir = llama(2 << 30, 8);
    let bytes = ModelDir::open(&dir).expect("a valid model").byte_len();
    warm(&dir);
    let before = || pretouch(3 * bytes);
    let contestants = vec![
        Contestant::new("cast as it loads", || {
            let plan = ModelDir::open(&dir).expect("a valid model").plan().cast(Float::F32);
            plan.load().expect("a readable model")
        })
        .prepared(before),
        Contestant::new("load, then cast, thread per core", || {
            let store = load(&dir);
            let tensors: Vec<_> = store.iter().map(|(_, tensor)| tensor).collect();
            tensors.into_par_iter().map(widened).collect::<Vec<_>>()
        })
        .prepared(before),
    ];
    race("load 2 GiB of BF16 as F32, hot", 9, bytes, contestants);
}

fn widened(tensor: &Tensor) -> Vec<u8> {
    let cast = FloatCast::new(tensor.dtype(), Float::F32).expect("a model of BF16");
    let mut after = vec![0; 2 * tensor.bytes().len()];
    cast.convert(tensor.bytes(), &mut after);
    after
}

fn load(dir: &Path) -> TensorStore {
    let model = ModelDir::open(dir).expect("a valid model");
    model.plan().load().expect("a readable model")
}
