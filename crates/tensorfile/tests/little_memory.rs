//! A long header with too little memory is an error and does not abort the process. A binary of its
//! own, because its allocator refuses memory beyond a limit.
#![expect(unsafe_code, reason = "an allocator is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use tensorfile::{ErrorKind, Header, HeaderOptions};

/// The system's allocator, up to a number of bytes.
struct Limited {
    used: AtomicUsize,
    max: AtomicUsize,
}

#[global_allocator]
static ALLOCATOR: Limited =
    Limited { used: AtomicUsize::new(0), max: AtomicUsize::new(usize::MAX) };

// SAFETY: memory is the system's; a refusal is a null pointer, as the trait demands.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = self.used.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        if used > self.max.load(Ordering::Relaxed) {
            self.used.fetch_sub(layout.size(), Ordering::Relaxed);
            return std::ptr::null_mut();
        }
        // SAFETY: our caller guarantees the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        self.used.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: our caller guarantees both, and all memory is the system's.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// A file whose header has many short names, unsorted.
fn file(end: &str) -> Vec<u8> {
    let mut json = String::from("{");
    for number in 0..20_000_u32 {
        let (comma, name) = (if number == 0 { "" } else { "," }, number.reverse_bits());
        let entry = r#"{"dtype":"U8","shape":[0],"data_offsets":[0,0]}"#;
        write!(json, "{comma}\"{name:x}\":{entry}").expect("text takes text");
    }
    json += end;
    [&(json.len() as u64).to_le_bytes(), json.as_bytes()].concat()
}

#[test]
fn a_long_header_that_finds_too_little_memory_is_an_error() {
    // In the form of writers, and in one for the general parser.
    for (end, tensors) in [("}", 20_000), (" }", 20_000)] {
        let file = file(end);
        let (mut refused, mut read) = (0, 0);
        for more in (1 << 16..6 * file.len()).step_by(file.len() / 8) {
            let used = ALLOCATOR.used.load(Ordering::Relaxed);
            ALLOCATOR.max.store(used + more, Ordering::Relaxed);
            let header = Header::from_bytes(&file, &HeaderOptions::default());
            ALLOCATOR.max.store(usize::MAX, Ordering::Relaxed);
            match header {
                Ok(header) => {
                    assert_eq!(header.tensors().len(), tensors);
                    read += 1;
                }
                Err(error) => {
                    let ErrorKind::OutOfMemory { byte_len } = *error.kind() else {
                        panic!("{error}")
                    };
                    assert!(byte_len > more, "{byte_len} of {more}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 10 && read > 10, "{refused} refused, {read} read");
    }
}
