//! How a session behaves as a whole: one program, a module per concern. What injects
//! faults into SQLite's file system is a separate program.
#![allow(clippy::unwrap_used)] // a failure here fails the test

#[path = "../common/mod.rs"]
mod common;

mod faults;
mod files;
mod flipped_bits;
mod folders;
mod no_writing;
mod notes;
mod power;
mod projects;
mod repair;
mod search;
mod survives;
mod tree;
