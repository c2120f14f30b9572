//! The server over real sockets: one program, a module per concern.
#![allow(clippy::unwrap_used)] // a failure here fails the test

mod batches;
mod continuing;
mod cut_calls;
mod files;
mod fixture;
mod http;
mod interfaces;
mod keys;
mod load;
mod openai;
mod window_server;
