//! The most memory that opening a model takes, as a multiple of its header bytes.

use std::fs::File;
use std::io::Read;

use modeldir::ModelDir;
use modeldir_benches::deepseek;
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn main() {
    let dir = deepseek();
    let mut header_bytes = 0;
    for entry in dir.read_dir().expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "safetensors") {
            let mut prefix = [0; 8];
            File::open(path).and_then(|mut file| file.read_exact(&mut prefix)).expect("a shard");
            header_bytes += u64::from_le_bytes(prefix);
        }
    }
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let model = ModelDir::open(&dir).expect("a valid model");
    let peak = MEMORY.peak_usage() - before;
    let kept = MEMORY.current_usage() - before;
    let times = |bytes: usize| bytes as f64 / header_bytes as f64;
    println!("open {} tensors, {header_bytes} header bytes", model.len());
    println!("peak {peak} bytes, {:.2} times the header bytes", times(peak));
    println!("kept {kept} bytes, {:.2} times the header bytes", times(kept));
}
