//! The user's own prompts, for other programs.

use contract::Result;
use serde::Deserialize;

use super::typed::TypedSettings;
use crate::App;

/// A prompt that the user wrote.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OwnPrompt {
    /// Unique among them.
    pub name: String,
    pub text: String,
}

impl App {
    /// The user's own prompts, in their order.
    pub fn own_prompts(&self) -> Result<Vec<OwnPrompt>> {
        Ok(self.ctx().settings.prompts()?.unwrap_or_default())
    }
}
