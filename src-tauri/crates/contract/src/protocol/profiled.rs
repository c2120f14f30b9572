//! Where the time of a turn went.

use serde::{Deserialize, Serialize};

use crate::types::ProfiledAnswer;

/// The profile and the trace of a finished turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredAnswer {
    pub turn: String,
    pub answer: ProfiledAnswer,
    /// JSON in the "Trace Event Format" of Chrome.
    pub trace: String,
}
