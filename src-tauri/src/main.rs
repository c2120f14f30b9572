//! The desktop window: each command is one call into `api`.

#![forbid(unsafe_code)]

fn main() {}
