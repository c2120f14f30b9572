//! The network: endpoints, the record of connections, and what is served to other programs.

pub mod api_files;
mod api_keys;
pub mod api_objects;
pub mod callers;
pub mod connections;
pub mod endpoints;
pub mod external_requests;
pub mod server_control;
pub mod server_status;
mod vocabulary;
