//! The functions of the interface. `include/inglenook.h` is made from this module.
//!
//! Every function catches panics and checks its arguments: NULL, wrong UTF-8 and wrong handles are errors.

pub mod answers;
pub mod models;
mod pointers;
pub mod process;
pub mod sessions;
