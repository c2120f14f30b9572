//! One test binary; see the modules.
