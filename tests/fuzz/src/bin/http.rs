//! Fuzzes the target `http`.

#![no_main]

fuzz::fuzz_main!(HTTP);
