//! Converts the floats of a model while they are read, norms to another type than the rest.

use std::error::Error;

use modeldir::{Float, ModelDir};

const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/models/llama");

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| LLAMA.to_owned());
    let model = ModelDir::open(path)?;

    // Only F16, BF16 and F32 are converted, not integers and packed types.
    let is_norm = |name: &str| name.ends_with("norm.weight");
    let plan = model.plan().cast(Float::F16).cast_where(Float::F32, |t| is_norm(t.name()));
    println!("{} bytes to read, {} in memory", plan.bytes_read(), plan.bytes_selected());

    // Elements are converted on their way to memory, without a second copy.
    let store = plan.load()?;
    for (name, tensor) in store.iter().take(5) {
        println!("{name}: {} becomes {}", model.info(name)?.dtype(), tensor.dtype());
    }
    Ok(())
}
