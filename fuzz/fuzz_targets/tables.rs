#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| phex_fuzz::tables(bytes));
