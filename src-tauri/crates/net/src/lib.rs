//! The single gate for the network: it approves and records every outgoing connection. Also the
//! parsers of server-sent events and of JSON as other programs send it.
#![forbid(unsafe_code)]

mod gate;
pub mod sse;

pub use gate::{Connection, ConnectionGate, ConnectionLog, OFFLINE, offline_error};
