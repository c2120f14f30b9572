//! Fuzzes the target `image`.

#![no_main]

fuzz::fuzz_main!(IMAGE);
