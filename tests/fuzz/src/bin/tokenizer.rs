//! Fuzzes the target `tokenizer`.

#![no_main]

fuzz::fuzz_main!(TOKENIZER);
