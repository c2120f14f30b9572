//! How a conversation that is longer than its model's context is made to fit.

use serde::{Deserialize, Serialize};

/// One way of compaction; `compaction` has the arithmetic of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionMethod {
    /// Leaves out the oldest turns.
    Window,
    /// Replaces the oldest turns by a summary that the model writes.
    Summary,
    /// Evicts the older tokens that later ones attend to least.
    Attention,
}

impl CompactionMethod {
    /// Every strategy.
    pub const ALL: [Self; 3] = [Self::Window, Self::Summary, Self::Attention];

    /// The name in settings and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Summary => "summary",
            Self::Attention => "attention",
        }
    }

    /// The strategy of a name; `None` for an unknown one.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }
}
