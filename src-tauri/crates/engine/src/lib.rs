//! Built by the first slice.
