//! Fuzzes the target `checkpoint`.

#![no_main]

fuzz::fuzz_main!(CHECKPOINT);
