//! One test binary; a module per concern.

mod cli;
mod configs;
mod forward;
mod golden;
mod kill9;
mod malformed;
mod malformed_weights;
mod quants;
mod scheduling;
mod templates;
mod tidy;
mod tokenizers;
