//! The precision of keys and values.

use serde::{Deserialize, Serialize};

/// How the context is kept in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kv {
    F32,
    #[default]
    F16,
    Q8_0,
    Q4_0,
}
