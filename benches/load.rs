//! Loading 2 GiB in 8 shards from the page cache into owned memory, beside the way of candle: map
//! each shard and copy tensor by tensor.

use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use modeldir::{LoadOptions, ModelDir};
use modeldir_benches::{Contestant, llama, pretouch, race, warm};
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
    let dir = llama(2 << 30, 8);
    let shards = shards(&dir);
    let bytes = ModelDir::open(&dir).expect("a valid model").byte_len();
    warm(&dir);
    let before = || pretouch(bytes + bytes / 3);
    let contestants = vec![
        Contestant::new("ModelDir::open + load", || {
            let model = ModelDir::open(&dir).expect("a valid model");
            model.plan().load(&LoadOptions::default()).expect("a readable model")
        })
        .prepared(before),
        Contestant::new("mmap + copy per tensor, 1 thread", || {
            shards.iter().flat_map(copy_shard).collect::<Vec<_>>()
        })
        .prepared(before),
        Contestant::new("mmap + copy per tensor, thread per core", || {
            shards.par_iter().flat_map_iter(copy_shard).collect::<Vec<_>>()
        })
        .prepared(before),
    ];
    race("load 2 GiB in 8 shards, hot", 9, bytes, contestants);
}
