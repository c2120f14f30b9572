//! One test binary; a module per concern.

mod configs;
mod forward;
mod golden;
mod malformed;
mod malformed_weights;
mod quants;
mod scheduling;
mod templates;
mod tidy;
mod tokenizers;
