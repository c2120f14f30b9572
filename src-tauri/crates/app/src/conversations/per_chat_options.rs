//! What a conversation's own options change about its answers, and the instructions that new chats begin with.

use contract::Result;
use contract::protocol::{ChatOptions, Constraint};
use contract::types::ConversationOptions;
use prompt::answer_options::set_thinking;
use serde_json::Value;

use crate::App;
use crate::settings::TypedSettings;

impl App {
    /// The options of a new chat: without instructions it gets the default ones. An empty text means none.
    pub(crate) fn with_default_instructions(
        &self,
        mut options: ConversationOptions,
    ) -> Result<ConversationOptions> {
        if options.system_prompt.is_none() {
            options.system_prompt = Some(self.ctx().settings.instructions()?);
        }
        options.system_prompt = options.system_prompt.filter(|text| !text.trim().is_empty());
        Ok(options)
    }

    /// `chat_options` for a conversation with these options.
    pub(crate) fn chat_options_with(
        &self,
        model: &str,
        options: &ConversationOptions,
        tools: Value,
    ) -> Result<ChatOptions> {
        let mut chat = self.chat_options(model, ChatOptions { tools, ..ChatOptions::default() })?;
        set_thinking(&mut chat.kwargs, options.thinking.as_deref(), options.reasoning_effort.as_deref());
        chat.image_detail = options.image_detail;
        Ok(chat)
    }
}

/// The form that a JSON schema in these options gives answers. Errors say what is wrong with the schema.
pub(crate) fn constraint_of(options: &ConversationOptions) -> Result<Option<Constraint>> {
    options.json_schema.as_deref().map(inference::constraints::schema_constraint).transpose()
}
