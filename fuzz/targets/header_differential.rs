//! Gives libFuzzer's bytes to `modeldir_properties::header_differential`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(wrong) = modeldir_properties::header_differential(data) {
        panic!("{wrong}");
    }
});
