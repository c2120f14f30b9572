//! One test binary; a module per concern.

mod malformed;
mod malformed_weights;
mod quants;
mod tidy;
