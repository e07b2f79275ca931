//! Shows what a model holds, from its headers and JSON files alone.

use std::error::Error;

use modeldir::ModelDir;

const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/models/llama");

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| LLAMA.to_owned());
    let model = ModelDir::open(path)?;

    for tensor in model.tensors() {
        let (name, dtype, shape) = (tensor.name(), tensor.dtype(), tensor.shape());
        println!("{name}: {dtype} {shape:?}, {} bytes", tensor.byte_len());
    }
    println!(
        "{} tensors, {} bytes, {} shards",
        model.len(),
        model.byte_len(),
        model.shards().len()
    );

    // If config.json is broken, only this call fails.
    match model.config() {
        Ok(config) => {
            let (types, layers) = (config.architectures(), config.num_hidden_layers());
            println!("config: {types:?}, layers {layers:?}");
        }
        Err(error) => println!("config: {error}"),
    }
    for (role, path) in model.tokenizer().iter() {
        println!("{role}: {}", path.display());
    }

    // What opening ignored or found odd; empty for most directories.
    print!("{}", model.report());
    Ok(())
}
