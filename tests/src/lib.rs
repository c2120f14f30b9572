//! Shared by the tests: where the reference data lie.
