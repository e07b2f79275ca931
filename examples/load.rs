//! Loads a whole model into memory, in parallel, and prints what was loaded and how fast.

use std::collections::BTreeMap;
use std::error::Error;

use modeldir::ModelDir;

const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/models/llama");

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| LLAMA.to_owned());

    // Reads JSON and headers only. An incomplete directory is an error here.
    let model = ModelDir::open(&path)?;
    println!("{path}\n\n{:40} {:>7} {:>15}", "shard", "tensors", "bytes");
    for shard in model.shards() {
        let (path, tensors) = (shard.path().display(), shard.num_tensors());
        println!("{path:40} {tensors:>7} {:>15}", shard.file_bytes());
    }

    // When `load` returns, every byte is in memory.
    let store = model.load()?;
    let mut dtypes: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for (_, tensor) in store.iter() {
        let (tensors, bytes) = dtypes.entry(tensor.dtype()).or_default();
        *tensors += 1;
        *bytes += tensor.byte_len();
    }
    println!("\n{:40} {:>7} {:>15}", "dtype", "tensors", "bytes");
    for (dtype, (tensors, bytes)) in dtypes {
        println!("{:40} {tensors:>7} {bytes:>15}", dtype.name());
    }

    let (tensors, bytes, stats) = (store.len(), store.byte_len(), store.stats());
    let rate = bytes as f64 / stats.elapsed.as_secs_f64() / f64::from(1 << 30);
    println!("\n{tensors} tensors, {bytes} bytes in {:.2?}, {rate:.2} GiB/s", stats.elapsed);
    Ok(())
}
