//! Fuzzes the target `mcp`.

#![no_main]

fuzz::fuzz_main!(MCP);
