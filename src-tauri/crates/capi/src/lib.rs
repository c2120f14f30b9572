//! C interface: models, token ids, answers, saved sessions, checkpoints and embeddings.
//!
//! Thin over `app`. Objects are numbers, not pointers: a wrong or freed one is an error. A panic never crosses the
//! boundary; it becomes an error.
#![deny(unsafe_code)]

mod buffers;
pub mod exports;
mod failure;
mod generation;
mod handles;
mod open_models;
mod sessions;
