//! Reads some rows of one tensor, and nothing else of its file but the header.

use std::error::Error;

use modeldir::{ModelDir, Selection};

const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/models/llama");

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| LLAMA.to_owned());
    let model = ModelDir::open(path)?;
    let largest = model.tensors().max_by_key(|tensor| tensor.byte_len()).ok_or("no tensors")?;
    println!("{}: {} {:?}", largest.name(), largest.dtype(), largest.shape());

    // The first two of its first dimension; of the others, all.
    let selection = Selection::all().with_range(0, 0..2);
    let rows = model.read_selection(largest.name(), &selection)?;
    println!("two rows: {:?}, {} of {} bytes", rows.shape(), rows.byte_len(), largest.byte_len());

    // Any float becomes f32; `as_slice` borrows elements as they are.
    println!("values: {:?} …", &rows.to_f32()?[..4]);
    Ok(())
}
