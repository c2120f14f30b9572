//! Whole models: one program, a module per concern. What counts allocations is a separate program.
#![allow(clippy::unwrap_used)] // a failure here fails the test

mod constrained;
mod conversion;
mod new_layouts;
mod vision;
mod vision_data;
mod vision_families;
mod vision_written;
