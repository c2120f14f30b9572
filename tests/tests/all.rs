//! One test binary; a module per concern.

mod malformed;
mod tidy;
