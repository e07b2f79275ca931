//! The models that the benches read, made once under `target/bench-data`.

use std::path::{Path, PathBuf};

use modeldir_fixtures::{Synthetic, Tensor, file, shard_name, synthetic_deepseek, synthetic_llama};

/// Returns a DeepSeek-V3-shaped model without data: 163 shards, 93,696 tensors.
pub fn deepseek() -> PathBuf {
    made("deepseek", synthetic_deepseek)
}

/// Returns a Llama-shaped model of random bytes.
pub fn llama(total_bytes: u64, shards: usize) -> PathBuf {
    made(&format!("llama-{}m-{shards}", total_bytes >> 20), |dir| {
        synthetic_llama(dir, total_bytes, shards)
    })
}

/// Returns a model of this many equal tensors of random bytes.
pub fn small_tensors(tensors: usize, total_bytes: usize, shards: usize) -> PathBuf {
    made(&format!("small-{tensors}-{shards}"), |dir| {
        let byte_len = total_bytes / tensors;
        for shard in 1..=shards {
            let numbers = (0..tensors).filter(|number| number % shards == shard - 1);
            let in_shard: Vec<Tensor> = numbers
                .map(|number| Tensor::random(&format!("t{number:05}"), "U8", &[byte_len]))
                .collect();
            std::fs::write(dir.join(shard_name(shard, shards)), file(&in_shard))?;
        }
        let tensor_bytes = (byte_len * tensors) as u64;
        Ok(Synthetic { tensors, tensor_bytes, ..Synthetic::default() })
    })
}

/// Makes a model in a folder of this name, unless it is there. A half-made one has another name.
fn made(name: &str, make: impl FnOnce(&Path) -> std::io::Result<Synthetic>) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench-data");
    let (dir, half) = (data.join(name), data.join(format!("{name}.half")));
    if !dir.is_dir() {
        std::fs::remove_dir_all(&half).ok();
        std::fs::create_dir_all(&half).expect("target is writable");
        let made = make(&half).expect("target has room");
        std::fs::rename(&half, &dir).expect("target is writable");
        println!("made {name}: {made:?}");
    }
    dir
}
