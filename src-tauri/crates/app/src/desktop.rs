//! What only the desktop needs: one window, its state, and links that open it.

pub mod deep_links;
pub mod single_instance;
pub mod window_state;
