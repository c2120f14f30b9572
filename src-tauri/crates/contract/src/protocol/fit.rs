//! Fitting a conversation into its context.

use serde::{Deserialize, Serialize};

use super::{CompactedRange, CountRequest, SummaryTask};

/// A conversation to shorten.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FitRequest {
    pub count: CountRequest,
    /// Maximum tokens of the answer. None: as many as fit.
    pub max_tokens: Option<usize>,
    /// Leaves nothing out: only names a summary worth making.
    pub ahead: bool,
}

/// The result of fitting a conversation into its context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FitOutcome {
    /// It fits as it is.
    Nothing,
    Compacted {
        range: CompactedRange,
    },
    Wanting {
        wanted: Box<SummaryTask>,
    },
}
