//! Maps a model without reading it, then touches one tensor.
#![expect(unsafe_code, reason = "a mapping is sound only while nothing writes to the files")]

use std::error::Error;
use std::time::Instant;

use modeldir::ModelDir;

const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/models/llama");

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| LLAMA.to_owned());
    let model = ModelDir::open(path)?;

    let start = Instant::now();
    // SAFETY: the user of this example does not change the model's files while it runs.
    let store = unsafe { model.plan().map()? };
    println!("{} bytes mapped in {:.2?}, none read", store.byte_len(), start.elapsed());

    // A page is read when it is first touched; the other tensors are never read.
    let (name, tensor) = store.iter().next().ok_or("no tensors")?;
    let start = Instant::now();
    let zeros = tensor.bytes().iter().filter(|&&byte| byte == 0).count();
    println!("{name}: {zeros} of {} bytes are 0, {:.2?}", tensor.byte_len(), start.elapsed());
    Ok(())
}
