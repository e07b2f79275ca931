//! Mapping 4 GiB that the page cache holds and bringing every page in, beside a plain mapping whose
//! pages are touched.

use std::fs::File;
use std::path::PathBuf;

use memmap2::Mmap;
use modeldir::options::Populate;
use modeldir::{MapOptions, ModelDir};
use modeldir_benches::{Contestant, drop_cache, llama, race, warm_cache};
use rayon::prelude::*;

/// Maps a shard and reads a byte of each page.
fn touch(path: &PathBuf) -> Mmap {
    let file = File::open(path).expect("a shard");
    // SAFETY: nothing writes to the bench's own files while it runs.
    let map = unsafe { Mmap::map(&file) }.expect("a shard");
    std::hint::black_box(map.iter().step_by(4096).fold(0_u8, |sum, byte| sum.wrapping_add(*byte)));
    map
}

fn main() {
    let dir = llama(4 << 30, 8);
    let model = ModelDir::open(&dir).expect("a valid model");
    let paths: Vec<_> = model.shards().iter().map(|shard| dir.join(shard.path())).collect();
    let bytes = model.byte_len();
    // Read in long pieces, so that the cache holds long pieces.
    drop_cache(&paths).expect("the bench's own files");
    warm_cache(&paths).expect("the bench's own files");
    let contestants = vec![
        Contestant::new("open + map, populated", || {
            let model = ModelDir::open(&dir).expect("a valid model");
            let options = MapOptions { populate: Populate::AtOnce, ..MapOptions::default() };
            // SAFETY: nothing writes to the bench's own files while it runs.
            unsafe { model.plan().map_with(&options) }.expect("a readable model")
        }),
        Contestant::new("mmap, touched, 1 thread", || paths.iter().map(touch).collect::<Vec<_>>()),
        Contestant::new("mmap, touched, thread per core", || {
            paths.par_iter().map(touch).collect::<Vec<_>>()
        }),
    ];
    race("map 4 GiB, hot", 9, bytes, contestants);
}
