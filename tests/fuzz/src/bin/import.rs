//! Fuzzes the target `import`.

#![no_main]

fuzz::fuzz_main!(IMPORT);
