//! The state of sequences between forward passes: which pages hold their keys and values, and which
//! tokens those came from.

pub mod cache;
pub mod checksum;
pub mod snapshot;
