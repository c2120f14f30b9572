//! One test binary; a module per concern.

#![allow(clippy::unwrap_used)] // all of it is tests, helpers included

mod adapters;
mod checkpoints;
mod cli;
mod configs;
mod context_cost;
mod conversing;
mod convert;
mod forward;
mod golden;
mod histories;
mod incremental;
mod kill9;
mod kill9_load;
mod layouts;
mod limits;
mod malformed;
mod malformed_parts;
mod malformed_weights;
mod mixes;
mod quality;
mod quantized;
mod quants;
mod replies;
mod resident;
mod scheduling;
mod speculation;
mod stored;
mod templates;
mod tidy;
mod tokenizers;
mod typed;
mod worker_process;
