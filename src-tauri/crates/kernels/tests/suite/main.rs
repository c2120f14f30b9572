//! Backends against the specification: one program, a module per concern. What counts allocations and what needs a GPU are
//! separate programs.
#![allow(clippy::unwrap_used)] // a failure here fails the test

mod backends;
#[path = "../common/mod.rs"]
mod common;
mod images;
mod integers;
mod invariance;
mod masks;
mod mixed;
mod profile;
mod requantized;
mod shapes;
mod windows;
