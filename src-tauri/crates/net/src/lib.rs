//! The network's single gate: every outgoing connection asks it first and is recorded by it. And the parser of
//! server-sent events, which model servers and tool servers share.
#![forbid(unsafe_code)]

mod gate;
pub mod sse;

pub use gate::{Connection, ConnectionGate, ConnectionLog, OFFLINE, offline_error};
