//! Saves some tensors of a model as a new model directory, and opens it.

use std::error::Error;

use modeldir::ModelDir;

const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/models/llama");

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| LLAMA.to_owned());
    let to = std::env::temp_dir().join(format!("modeldir-save-{}", std::process::id()));

    // Only the chosen tensors are read.
    let plan = ModelDir::open(path)?.plan().filter(|tensor| tensor.name().contains("norm"));
    let store = plan.load()?;

    // Writes one file here; a larger model becomes shards with an index.
    let saved = store.save(&to)?;
    println!("{} bytes in {:?}", saved.byte_len, saved.shards);

    let copy = ModelDir::open(&to)?;
    for (name, tensor) in store.iter() {
        assert_eq!(copy.read(name)?.bytes(), tensor.bytes());
    }
    println!("{} tensors read back and equal", copy.len());
    Ok(std::fs::remove_dir_all(to)?)
}
