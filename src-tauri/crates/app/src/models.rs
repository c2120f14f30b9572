//! Models: the library, the catalogue, the hub, folders, memory fit, imports and removals.

pub mod catalog;
pub mod fit;
pub mod hub_client;
mod hub_search;
mod import;
pub mod library;
pub(crate) mod machine_facts;
pub mod model_settings;
pub(crate) mod model_states;
mod removal;
mod scan;
pub mod verify;

pub use ::model_dirs;
