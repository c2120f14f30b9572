//! The single gate for the network: it approves and records every outgoing connection. Also the
//! parser of server-sent events, which model servers and tool servers share.
#![forbid(unsafe_code)]

mod gate;
pub mod sse;

pub use gate::{Connection, ConnectionGate, ConnectionLog, OFFLINE, offline_error};
