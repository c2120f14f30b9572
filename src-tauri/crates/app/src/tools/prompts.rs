//! Prompts that tool servers offer: listed, filled in, put into the message box as text. Only the
//! user requests them, never a model, and nothing is sent automatically.

use std::time::Duration;

use mcp::offered_prompts::{prompt, text};

use crate::App;
use crate::settings::TypedSettings;
use contract::Result;
use contract::types::{ToolPrompt, ToolPromptArgs, ToolPromptText};

impl App {
    /// What a server has words for. It is started if it doesn't run.
    pub fn tool_prompts(&self, id: &str) -> Result<Vec<ToolPrompt>> {
        let (_, client) = self.server_in_use(id)?;
        Ok(client.prompts()?.iter().filter_map(prompt).collect())
    }

    /// A prompt as text, filled in by its server.
    pub fn tool_prompt(&self, args: &ToolPromptArgs) -> Result<ToolPromptText> {
        let (server, client) = self.server_in_use(&args.id)?;
        let seconds = self.ctx().settings.tool_seconds()?.unwrap_or(60);
        let messages = client.prompt(&args.name, &args.arguments, Duration::from_secs(seconds))?;
        Ok(ToolPromptText { text: text(&server, &args.name, &messages)? })
    }
}
