//! A mapping whose bytes are all brought in at once, as the system counts them.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "mapping is what is tested")]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use modeldir::options::Populate;
use modeldir::{MapOptions, ModelDir};

/// Longer than any piece that a thread reads in at a time.
const LEN: u64 = 100 << 20;

/// A file with two tensors of this length together, of which nothing is on the disk but the header.
fn sparse(folder: &Path) {
    let half = LEN / 2;
    let tensor = |start: u64| {
        format!(r#"{{"dtype":"U8","shape":[{half}],"data_offsets":[{start},{}]}}"#, start + half)
    };
    let header = format!(r#"{{"a":{},"b":{}}}"#, tensor(0), tensor(half));
    let mut file = File::create(folder.join("model.safetensors")).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(8 + header.len() as u64 + LEN).unwrap();
}

/// Bytes of the mappings of a file that are in the memory of this process.
fn resident(path: &Path) -> u64 {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut is_of_file, mut sum) = (false, 0);
    for line in maps.lines() {
        if let Some(kib) = line.strip_prefix("Rss:").filter(|_| is_of_file) {
            sum += kib.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10;
        } else if !line.split(' ').next().unwrap().ends_with(':') {
            is_of_file = line.ends_with(path.to_str().unwrap());
        }
    }
    sum
}

#[test]
fn populating_brings_in_every_byte_of_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    sparse(&root);
    let plan = ModelDir::open(&root).unwrap().plan();
    let map = |plan: &modeldir::LoadPlan, populate| {
        let options = MapOptions { populate, ..MapOptions::default() };
        // SAFETY: nothing writes to the file of this test.
        unsafe { plan.map_with(&options) }.unwrap()
    };
    let path = root.join("model.safetensors");
    let touched = map(&plan, Populate::WhenTouched);
    assert_eq!(resident(&path), 0);
    drop(touched);
    let first = plan.only(["a"]).unwrap();
    for (plan, len) in [(&first, LEN / 2), (&plan, LEN)] {
        let store = map(plan, Populate::AtOnce);
        let found = resident(&path);
        if found == 0 {
            let message = "populating: NOT RUN, this kernel populates no mapping\n";
            return std::io::stderr().write_all(message.as_bytes()).unwrap();
        }
        assert!(found >= len, "{found} of {len} bytes");
        drop(store);
    }
}
