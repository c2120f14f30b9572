//! The network: endpoints, the record of connections, and what is served to other programs.

pub mod connections;
mod endpoint_listing;
pub mod endpoints;
pub mod external_requests;
pub mod server_status;
