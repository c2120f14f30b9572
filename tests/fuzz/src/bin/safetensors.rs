//! Fuzzes the target `safetensors`.

#![no_main]

fuzz::fuzz_main!(SAFETENSORS);
