//! One test binary; a module per concern.

#![allow(clippy::unwrap_used)] // all of it is tests, helpers included

mod adapters;
mod aged;
mod card_faults;
mod cards;
mod checkpoints;
mod cli;
mod configs;
mod context_cost;
mod conversing;
mod convert;
mod downloads;
mod embeddings;
mod endpoints;
mod fetching;
mod forward;
mod golden;
mod histories;
mod incremental;
mod interrupts;
mod kill9;
mod kill9_load;
mod layouts;
mod library;
mod limits;
mod malformed;
mod malformed_parts;
mod malformed_weights;
mod mixes;
mod quality;
mod quantized;
mod quants;
mod remote;
mod replies;
mod resident;
mod scheduling;
mod speculation;
mod stored;
mod templates;
mod tidy;
mod tokenizers;
mod tools;
mod two_processes;
mod typed;
mod worker_process;
