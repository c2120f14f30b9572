//! Fuzzes the target `template`.

#![no_main]

fuzz::fuzz_main!(TEMPLATE);
