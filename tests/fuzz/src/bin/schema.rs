//! Fuzzes the target `schema`.

#![no_main]

fuzz::fuzz_main!(SCHEMA);
