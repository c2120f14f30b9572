//! Results of the tools: fields for a program.
//!
//! The documentation of a field is its description in the schema that clients get.

use contract::types::{ConversationSummary, Finish, ModelEntry, ModelState};
use rmcp::schemars::{self, JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::answer::Answer;
use crate::resources;

/// Result of `generate_text`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GeneratedText {
    pub text: String,
    /// What the model thought before it answered.
    pub reasoning: String,
    #[schemars(schema_with = "finish_schema")]
    pub finish: Finish,
    pub model: String,
    pub prompt_tokens: u32,
    pub generated_tokens: u32,
}

impl GeneratedText {
    /// The fields of a complete answer.
    pub fn of(answer: Answer, model: String) -> Self {
        let finish = answer.finish();
        let stats = answer.stats.as_ref();
        Self {
            finish,
            model,
            prompt_tokens: stats.map_or(0, |stats| stats.prompt_tokens),
            generated_tokens: stats.map_or(0, |stats| stats.generated_tokens),
            text: answer.text,
            reasoning: answer.reasoning,
        }
    }
}

/// Result of `chat`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChatAnswer {
    #[serde(flatten)]
    pub answer: GeneratedText,
    /// Id of the saved chat; null: the chat is not saved.
    pub session: Option<String>,
}

/// Result of `count_tokens`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TokenCount {
    pub count: usize,
}

/// Result of `get_model_info`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelInfo {
    pub id: String,
    pub name: String,
    pub parameters: u64,
    pub architecture: String,
    /// In tokens; 0: unknown.
    pub max_context: u32,
    #[schemars(schema_with = "backend_schema")]
    pub backend: &'static str,
}

/// Result of `list_models`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelList {
    pub models: Vec<ListedModel>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ListedModel {
    pub id: String,
    pub name: String,
    pub parameters: u64,
    pub architecture: String,
    /// In tokens; 0: unknown.
    pub max_context: u32,
    pub format: String,
    pub bytes: u64,
    pub is_loaded: bool,
    pub is_embedding_model: bool,
}

impl From<ModelEntry> for ListedModel {
    fn from(entry: ModelEntry) -> Self {
        Self {
            id: entry.id,
            name: entry.name,
            parameters: entry.parameters,
            architecture: entry.architecture,
            max_context: entry.context_length,
            format: entry.dtype,
            bytes: entry.bytes,
            is_loaded: entry.state == ModelState::Ready,
            is_embedding_model: entry.embeds,
        }
    }
}

/// Result of `list_sessions`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionList {
    pub sessions: Vec<ListedSession>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ListedSession {
    pub id: String,
    pub title: String,
    pub model: String,
    /// Since the Unix epoch, UTC.
    pub created_ms: i64,
    /// Since the Unix epoch, UTC.
    pub updated_ms: i64,
    /// Of the resource that holds the chat as Markdown.
    pub uri: String,
}

impl From<ConversationSummary> for ListedSession {
    fn from(chat: ConversationSummary) -> Self {
        Self {
            uri: resources::uri_of(&chat.id),
            id: chat.id,
            title: chat.title,
            model: chat.model,
            created_ms: chat.created_ms,
            updated_ms: chat.updated_ms,
        }
    }
}

fn finish_schema(_: &mut SchemaGenerator) -> Schema {
    let values = [
        Finish::Stop,
        Finish::ToolCalls,
        Finish::Length,
        Finish::Cancelled,
        Finish::ContextFull,
        Finish::TimeUp,
    ];
    json_schema!({ "type": "string", "enum": values })
}

fn backend_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["cpu", "gpu", "scalar"] })
}
