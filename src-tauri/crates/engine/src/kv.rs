//! The state of sequences between forward passes: which pages and slots hold it, which tokens it came from, and
//! where they can go back to.

pub mod aging;
pub mod cache;
pub mod checksum;
pub mod kept;
pub mod pool;
pub mod size;
pub mod snapshot;
