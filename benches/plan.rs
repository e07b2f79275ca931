//! Planning what one of 64 ranks takes of a model of 93,696 tensors, rules included, and of a half
//! and a quarter of its shards: time has to be in proportion to the tensors.

use std::path::{Path, PathBuf};
use std::time::Instant;

use modeldir::options::Weights;
use modeldir::partition::{ExpertSplit, Uneven};
use modeldir::{LoadPlan, ModelDir, Partition, Rank, Topology};
use modeldir_benches::{deepseek, median};

const ROUNDS: usize = 15;

fn main() {
    let dir = deepseek();
    let shards = ModelDir::open(&dir).expect("a valid model").shards().len();
    let models: Vec<ModelDir> = [4, 2, 1].map(|part| first_shards(&dir, shards / part)).into();
    println!("plan: {ROUNDS} rounds");
    println!(
        "{:16}{:>10}{:>14}{:>12}{:>14}{:>10}",
        "", "tensors", "median ms", "min ms", "ns/tensor", "requests"
    );
    let tp = Topology::tensor_parallel(Rank::new(1, 64).expect("a rank of 64"));
    let rank = Rank::new(1, 8).expect("a rank of 8");
    let experts = Topology::tensor_parallel(rank);
    let experts = experts.experts(rank, ExpertSplit::Linear);
    for model in &models {
        measure("all", model, || model.plan());
        measure("tp 1/64", model, || plan_for(model, &tp));
        measure("tp 1/8 ep 1/8", model, || plan_for(model, &experts));
    }
}

/// The model without the shards after the first so many.
fn first_shards(dir: &Path, count: usize) -> ModelDir {
    let model = ModelDir::open(dir).expect("a valid model");
    let files: Vec<PathBuf> =
        model.shards().iter().take(count).map(|shard| shard.path().to_owned()).collect();
    ModelDir::open_with(dir, &Weights::Files(files).into()).expect("a valid model")
}

/// What a rank of a job does between opening and loading. Blocks of 128 do not divide over 64
/// ranks, so the first ranks take more; and the last layer has experts that the configuration does
/// not count.
fn plan_for(model: &ModelDir, topology: &Topology) -> LoadPlan {
    let rules = Partition::for_config(model.config().expect("a configuration"));
    let rules = rules.expect("a known family");
    let rules = Partition { uneven: Uneven::Balanced, num_experts: None, ..rules };
    model.plan_for(&rules, topology).expect("rules that fit")
}

/// Prints how long it takes to make a plan, after one that does not count.
fn measure(name: &str, model: &ModelDir, make: impl Fn() -> LoadPlan) {
    let num_requests = make().requests().len();
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let plan = make();
        times.push(start.elapsed().as_secs_f64());
        drop(plan);
    }
    let (tensors, median) = (model.len(), median(&mut times));
    let (median_ms, min_ms) = (median * 1e3, times[0] * 1e3);
    let per_tensor = median * 1e9 / tensors as f64;
    println!(
        "{name:16}{tensors:>10}{median_ms:>14.2}{min_ms:>12.2}{per_tensor:>14.0}{num_requests:>10}"
    );
}
