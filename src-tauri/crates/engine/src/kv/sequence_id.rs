//! Identifier of a live sequence.

use serde::{Deserialize, Serialize};

/// Names a live sequence of one model. Never reused while the model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SequenceId(pub u64);
