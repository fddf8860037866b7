//! See `tests/it/fuzz/invariants/mod.rs`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tokencanary_fuzz::traces(data));
