//! Fuzzes the target `gguf`.

#![no_main]

fuzz::fuzz_main!(GGUF);
