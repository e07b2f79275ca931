//! Reads some rows of one tensor; of its file, only the header and these rows.

use std::error::Error;

use modeldir::{ModelDir, Selection};

const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/models/llama");

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| LLAMA.to_owned());
    let model = ModelDir::open(path)?;
    let largest = model.tensors().max_by_key(|tensor| tensor.byte_len()).ok_or("no tensors")?;
    println!("{}: {} {:?}", largest.name(), largest.dtype(), largest.shape());

    // Rows 0 and 1 along the first dimension; all of the other dimensions.
    let selection = Selection::all().with_range(0, 0..2);
    let rows = model.read_selection(largest.name(), &selection)?;
    println!("two rows: {:?}, {} of {} bytes", rows.shape(), rows.byte_len(), largest.byte_len());

    // `to_f32` converts elements of any float type; `as_slice` borrows them without conversion.
    println!("values: {:?} …", &rows.to_f32()?[..4]);
    Ok(())
}
