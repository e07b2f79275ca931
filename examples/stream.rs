//! Copies a model to a device in bounded memory: each tensor arrives while the next ones are read.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use modeldir::{LoadOptions, ModelDir};

const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/models/llama");

/// Stands for a device; replace it with calls of your device's library.
#[derive(Default)]
struct Device {
    memory: Vec<u8>,
}

impl Device {
    /// Copies bytes to the device, and returns their position.
    fn upload(&mut self, bytes: &[u8]) -> usize {
        self.memory.extend_from_slice(bytes);
        self.memory.len() - bytes.len()
    }
}

fn main() -> modeldir::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| LLAMA.to_owned());
    let model = ModelDir::open(path)?;
    let (mut device, mut places) = (Device::default(), BTreeMap::new());

    // The most memory of the host for tensors, whatever the size of the model.
    let options =
        LoadOptions { max_bytes_in_flight: NonZeroU64::new(256 << 20), ..Default::default() };
    model.plan().stream_with(&options, |tensor| {
        places.insert(tensor.name().to_owned(), device.upload(tensor.bytes()));
        Ok(())
    })?;
    println!("{} tensors, {} bytes on the device", places.len(), device.memory.len());
    Ok(())
}
