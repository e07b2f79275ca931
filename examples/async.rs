//! Loads two models at the same time from async code, on a runtime with one thread.

use std::error::Error;

use modeldir::{ModelDir, TensorStore};

const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/models/llama");

/// Opening blocks while headers are read, so it runs on a blocking thread.
async fn load(path: String) -> Result<TensorStore, modeldir::Error> {
    let open = tokio::task::spawn_blocking(|| ModelDir::open(path));
    let model = open.await.expect("opening does not panic")?;
    // Dropping this future ends the load.
    model.plan().load_async().await
}

async fn stream(path: String) -> Result<usize, Box<dyn Error>> {
    // Tensors arrive one after the other, in bounded memory.
    let mut tensors = ModelDir::open(path)?.plan().stream_async();
    let mut bytes = 0;
    while let Some(tensor) = tensors.try_next().await? {
        bytes += tensor.byte_len();
    }
    Ok(bytes)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| LLAMA.to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let first = tokio::spawn(load(path.clone()));
        let second = tokio::spawn(load(path.clone()));
        let (first, second) = (first.await??, second.await??);
        println!("{} and {} tensors loaded", first.len(), second.len());
        println!("{} bytes streamed", stream(path).await?);
        Ok(())
    })
}
