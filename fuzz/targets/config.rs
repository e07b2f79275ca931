//! Gives libFuzzer's bytes to `modeldir_properties::config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(wrong) = modeldir_properties::config(data) {
        panic!("{wrong}");
    }
});
