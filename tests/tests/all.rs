//! One test binary; a module per concern.

mod tidy;
