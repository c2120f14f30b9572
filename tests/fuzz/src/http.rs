//! Bodies of HTTP requests, as every kind of request.

use server::fuzzing::parse_body;

use crate::FuzzTarget;

/// Parses request bodies.
pub static HTTP: FuzzTarget = FuzzTarget { name: "http", read, max_bytes: 256 << 20 };

fn read(input: &[u8]) {
    let accepted = parse_body(input);
    assert_eq!(accepted, parse_body(input), "a body has one reading");
}
