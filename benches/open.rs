//! Opening a model of 163 shards and 93,696 tensors, index included, beside what a loader without
//! this library does: map each shard, parse it with `SafeTensors`, put the names into one map.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use modeldir::ModelDir;
use modeldir_benches::{Contestant, deepseek, race};
use safetensors::{Dtype, SafeTensors};

/// Shard, dtype and shape of each tensor.
type Names = HashMap<String, (usize, Dtype, Vec<usize>)>;

/// The peer: the mapped shards, and one map of all names.
fn peer(shards: &[PathBuf]) -> (Vec<Mmap>, Names) {
    let map = |path: &PathBuf| {
        let file = File::open(path).expect("a shard");
        // SAFETY: nothing writes to the bench's own files while it runs.
        unsafe { Mmap::map(&file) }.expect("a shard")
    };
    let maps: Vec<Mmap> = shards.iter().map(map).collect();
    let mut names = HashMap::new();
    for (shard, map) in maps.iter().enumerate() {
        for (name, view) in SafeTensors::deserialize(map).expect("a valid shard").iter() {
            names.insert(name.to_owned(), (shard, view.dtype(), view.shape().to_vec()));
        }
    }
    (maps, names)
}

fn shards(dir: &Path) -> Vec<PathBuf> {
    let entries = dir.read_dir().expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut shards: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "safetensors")).collect();
    shards.sort();
    shards
}

fn main() {
    let dir = deepseek();
    let shards = shards(&dir);
    ModelDir::open(&dir).expect("a valid model");
    assert_eq!(peer(&shards).1.len(), ModelDir::open(&dir).expect("a valid model").len());
    let contestants = vec![
        Contestant::new("ModelDir::open, index included", || ModelDir::open(&dir).expect("valid")),
        Contestant::new("mmap + SafeTensors + HashMap", || peer(&shards)),
    ];
    let header_bytes = header_bytes(&shards);
    race("open 163 shards, 93,696 tensors", 15, header_bytes, contestants);
}

/// Bytes of all headers, read from the first eight bytes of each file.
fn header_bytes(shards: &[PathBuf]) -> u64 {
    use std::io::Read;
    let header_len = |path: &PathBuf| {
        let mut prefix = [0; 8];
        File::open(path).and_then(|mut file| file.read_exact(&mut prefix)).expect("a shard");
        u64::from_le_bytes(prefix)
    };
    shards.iter().map(header_len).sum()
}
