//! Gives libFuzzer's bytes to `modeldir_properties::header`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(wrong) = modeldir_properties::header(data) {
        panic!("{wrong}");
    }
});
