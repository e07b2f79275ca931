//! Brings memory and page cache into a known state before a timed region.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use memmap2::{Advice, MmapMut};

/// Touches and gives back this many bytes of anonymous memory.
///
/// A virtual machine may hand idle memory back to its host; the next first touch then pays for it,
/// which would be charged to whoever comes first.
pub fn pretouch(bytes: u64) {
    let bytes = usize::try_from(bytes).expect("a bench fits in memory");
    let mut memory = MmapMut::map_anon(bytes).expect("a bench fits in memory");
    // Without huge pages it only takes longer.
    memory.advise(Advice::HugePage).ok();
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
}

/// Reads every file of a directory once, so that the page cache holds it.
pub fn warm(dir: &Path) {
    let mut buffer = vec![0; 8 << 20];
    for entry in dir.read_dir().expect("a directory of the bench") {
        let mut file = File::open(entry.expect("a readable entry").path()).expect("a file");
        while file.read(&mut buffer).expect("a readable file") > 0 {}
    }
}
