//! Fuzzes the target `sse`.

#![no_main]

fuzz::fuzz_main!(SSE);
