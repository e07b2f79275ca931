//! Loading the part of rank 1 of 4 from the page cache into owned memory, half of the matrices cut
//! by rows and half by columns, beside the slice iterator of the reference reader.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use memmap2::Mmap;
use modeldir::ModelDir;
use modeldir_benches::{Contestant, cut, llama, pretouch, race, rank_plan, warm};
use rayon::prelude::*;
use safetensors::SafeTensors;
use safetensors::slice::IndexOp;

const RANK: usize = 1;
const WORLD: usize = 4;

/// A tensor that the peer has to cut: its shard, name, shape, and number among the matrices.
type Wanted = (usize, String, Vec<usize>, usize);

/// Maps the shards and copies every part run by run.
fn slice_all(paths: &[PathBuf], wanted: &[Wanted], threads: usize) -> BTreeMap<String, Vec<u8>> {
    let map = |path| {
        let file = File::open(path).expect("a shard");
        // SAFETY: nothing writes to the bench's own files while it runs.
        unsafe { Mmap::map(&file) }.expect("a shard")
    };
    let maps: Vec<Mmap> = paths.iter().map(map).collect();
    let shards: Vec<_> =
        maps.iter().map(|map| SafeTensors::deserialize(map).expect("a valid shard")).collect();
    let part = |(shard, name, shape, number): &Wanted| {
        let tensor = shards[*shard].tensor(name).expect("a tensor of the shard");
        let bytes = match cut(shape, *number, RANK, WORLD) {
            None => tensor.data().to_vec(),
            Some((dim, part)) => {
                let part = if dim == 0 { tensor.slice(part) } else { tensor.slice((.., part)) };
                let part = part.expect("a part inside");
                let mut bytes = Vec::with_capacity(part.remaining_byte_len());
                part.for_each(|run| bytes.extend_from_slice(run));
                bytes
            }
        };
        (name.clone(), bytes)
    };
    if threads == 1 {
        return wanted.iter().map(part).collect();
    }
    wanted.par_iter().map(part).collect::<Vec<_>>().into_iter().collect()
}

fn main() {
    let dir = llama(4 << 30, 8);
    let model = ModelDir::open(&dir).expect("a valid model");
    let paths: Vec<_> = model.shards().iter().map(|shard| dir.join(shard.path())).collect();
    let mut matrices = 0;
    let mut wanted = Vec::new();
    for tensor in model.tensors() {
        let shape = tensor.shape().to_vec();
        let is_matrix = shape.len() == 2;
        wanted.push((tensor.shard().position(), tensor.name().to_owned(), shape, matrices));
        matrices += usize::from(is_matrix);
    }
    let plan = || rank_plan(&model.plan(), RANK, WORLD).expect("whole tensors can be cut");
    warm(&dir);

    let (ours, theirs) = (plan().load(), slice_all(&paths, &wanted, 2));
    let ours = ours.expect("a readable model");
    assert_eq!(ours.len(), theirs.len());
    for (name, tensor) in ours.iter() {
        assert!(tensor.bytes() == theirs[name], "{name} differs");
    }
    let bytes = ours.byte_len();
    println!("{} tensors are equal; the plan reads {} bytes", ours.len(), plan().bytes_read());
    drop((ours, theirs));

    let before = || pretouch(bytes + bytes / 3);
    let contestants = vec![
        Contestant::new("open + plan + load", || {
            let model = ModelDir::open(&dir).expect("a valid model");
            let plan = rank_plan(&model.plan(), RANK, WORLD).expect("whole tensors can be cut");
            plan.load().expect("a readable model")
        })
        .prepared(before),
        Contestant::new("mmap + SliceIterator, 1 thread", || slice_all(&paths, &wanted, 1))
            .prepared(before),
        Contestant::new("mmap + SliceIterator, thread per core", || slice_all(&paths, &wanted, 2))
            .prepared(before),
    ];
    race("rank 1 of 4 of 4 GiB, hot", 9, bytes, contestants);
}
