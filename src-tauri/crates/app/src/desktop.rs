//! Desktop-only parts: the single window, its state, and the links that open it.

pub mod deep_links;
pub mod single_instance;
pub mod window_state;
