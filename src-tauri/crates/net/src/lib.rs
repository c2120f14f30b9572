//! The single gate for the network: it approves and records every outgoing connection. Also the
//! parsers of server-sent events and of JSON as other programs send it.
#![forbid(unsafe_code)]

mod gate;
mod proxy;
mod public_address;
pub mod sse;

pub use gate::{Connection, ConnectionGate, ConnectionLog, OFFLINE, offline_error};
pub use proxy::ProxyAddress;
pub use public_address::is_public;
