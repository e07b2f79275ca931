//! Streaming 4 GiB that the page cache holds in 512 MiB of memory, beside loading all of it.

use modeldir::ModelDir;
use modeldir_benches::{Contestant, llama, pretouch, race, warm};

fn main() {
    let dir = llama(4 << 30, 8);
    let bytes = ModelDir::open(&dir).expect("a valid model").byte_len();
    warm(&dir);
    let contestants = vec![
        Contestant::new("open + stream", || {
            let model = ModelDir::open(&dir).expect("a valid model");
            let mut taken = 0;
            let done = model.plan().stream(|tensor| {
                taken += tensor.byte_len() as u64;
                Ok(())
            });
            done.expect("a readable model");
            assert_eq!(taken, bytes);
        })
        .prepared(|| pretouch(bytes / 4)),
        Contestant::new("open + load", || {
            let model = ModelDir::open(&dir).expect("a valid model");
            model.plan().load().expect("a readable model")
        })
        .prepared(|| pretouch(bytes + bytes / 3)),
    ];
    race("stream 4 GiB in 512 MiB, hot", 9, bytes, contestants);
}
