//! Fuzzes the target `reply`.

#![no_main]

fuzz::fuzz_main!(REPLY);
