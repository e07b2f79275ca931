//! The memory that opening takes, held to the bound that the documentation states. A binary of its
//! own, for it counts what every thread allocates.

use modeldir::ModelDir;
use modeldir_fixtures::{ShardedModel, Tensor as Made, file};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Experts of one shard, whose headers are long beside their bytes.
fn experts(shard: usize) -> Vec<Made> {
    let parts = ["down_proj", "gate_proj", "up_proj"];
    let tensors = (0..256).flat_map(|expert| {
        parts.map(|part| format!("model.layers.{shard}.mlp.experts.{expert}.{part}.weight"))
    });
    tensors.map(|name| Made::random(&name, "BF16", &[4, 2])).collect()
}

fn header_len(file: &[u8]) -> usize {
    let (header_len, _) = file.split_first_chunk().expect("a file starts with eight bytes");
    usize::try_from(u64::from_le_bytes(*header_len)).expect("it is in memory")
}

#[test]
fn opening_takes_at_most_four_times_the_headers() {
    const SHARDS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let mut model = ShardedModel::new(SHARDS);
    let mut header_bytes = 0;
    for shard in 1..=SHARDS {
        let tensors = experts(shard);
        header_bytes += header_len(&file(&tensors));
        model = tensors.into_iter().fold(model, |model, tensor| model.tensor(shard, tensor));
    }
    model.write(folder.path()).unwrap();
    drop(model);

    for with_index in [true, false] {
        if !with_index {
            std::fs::remove_file(folder.path().join("model.safetensors.index.json")).unwrap();
        }
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let model = ModelDir::open(folder.path()).unwrap();
        let peak = ALLOCATOR.peak_usage() - before;
        assert_eq!(model.len(), SHARDS * 768);
        assert!(peak <= 4 * header_bytes, "{peak} bytes for {header_bytes} of headers");
    }
}
