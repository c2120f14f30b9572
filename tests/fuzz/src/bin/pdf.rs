//! Fuzzes the target `pdf`.

#![no_main]

fuzz::fuzz_main!(PDF);
