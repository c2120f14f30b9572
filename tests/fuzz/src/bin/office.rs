//! Fuzzes the target `office`.

#![no_main]

fuzz::fuzz_main!(OFFICE);
