//! Loads what this process of a distributed job needs; start it with mpirun, torchrun or srun.

use std::error::Error;

use modeldir::{ModelDir, Rank, Topology, launch};

const LLAMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/models/llama");

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| LLAMA.to_owned());

    // Without a launcher, this example loads as the second of two ranks. Your program should fail
    // instead: with a default rank, every process would load the same part.
    let rank = match launch::rank_from_env()? {
        Some(process) => process.rank(),
        None => Rank::new(1, 2)?,
    };

    // Every process opens the same directory and plans its own part of each tensor.
    let model = ModelDir::open(path)?;
    let plan = model.plan_for(&model.partition()?, &Topology::tensor_parallel(rank))?;
    println!("rank {rank}: {} of {} bytes to read", plan.bytes_read(), model.byte_len());

    // Each part is contiguous in memory.
    let store = plan.load()?;
    for (name, part) in store.iter().take(5) {
        println!("{name}: {:?} of {:?}", part.shape(), model.info(name)?.shape());
    }
    Ok(())
}
