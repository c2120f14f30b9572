//! One test binary; a module per concern.

mod forward;
mod golden;
mod malformed;
mod malformed_weights;
mod quants;
mod scheduling;
mod tidy;
