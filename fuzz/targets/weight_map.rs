//! Gives libFuzzer's bytes to `modeldir_properties::weight_map`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(wrong) = modeldir_properties::weight_map(data) {
        panic!("{wrong}");
    }
});
