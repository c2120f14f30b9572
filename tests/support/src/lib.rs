//! Shared by the tests of all crates: skipping that is counted, and comparisons that fail on NaN.
//!
//! Depends on nothing, so that every crate can use it in its tests.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod compare;
mod skip;
mod temp_dir;

pub use compare::{difference, largest, largest_difference};
pub use skip::{Missing, is_reference_required, report_part, report_test, test_name};
pub use temp_dir::TempDir;
