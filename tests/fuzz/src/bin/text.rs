//! Fuzzes the target `text`.

#![no_main]

fuzz::fuzz_main!(TEXT);
