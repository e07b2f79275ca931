//! Brings memory into a known state before a timed region.

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
