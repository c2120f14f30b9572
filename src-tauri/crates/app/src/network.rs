//! The network: endpoints, the record of connections, and what other programs are served.

pub mod connections;
pub mod endpoints;
pub mod external_requests;
pub mod server_status;
