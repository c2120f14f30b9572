//! Pictures against the reference: what Pillow and the published image processors made of the same files.
//!
//! The project's own small set holds hashes of large arrays. Where `INGLENOOK_REFERENCE` names the full set, pixel values
//! are also compared one by one, and the largest differences are printed.
#![allow(clippy::unwrap_used)] // a failure here fails the test

mod containers;
mod data;
mod decoding;
mod details;
mod families;
mod resampling;
mod tokens;
