//! The model that ships inside the program.

/// Its library id.
pub const ID: &str = "starter";
