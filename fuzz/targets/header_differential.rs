#![no_main]
//! Gives libFuzzer's bytes to `modeldir_properties::header_differential`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(wrong) = modeldir_properties::header_differential(data) {
        panic!("{wrong}");
    }
});
