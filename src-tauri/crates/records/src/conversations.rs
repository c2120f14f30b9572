//! Chats, folders and messages as they cross an edge, and as a prompt needs them.

use session::{BranchMessage, ConversationRow, FolderRow, SearchHit, Session};

use contract::protocol::{Ids, PromptMessage, TurnResult};
use contract::types::{
    ConversationOptions, ConversationSummary, ErrorInfo, Finish, Folder, Message, MessageHit, MessageState,
    Role, SnippetPart, ToolCall, TurnStats,
};
use file_search::citations;
use file_search::injected::FilledBranch;
use prompt::history::HistoryMessage;

/// A chat as it is listed. `active_turn`: the turn that is answering in it.
pub fn summary(row: ConversationRow, active_turn: Option<String>) -> ConversationSummary {
    ConversationSummary {
        id: row.id,
        title: row.title,
        model: row.model,
        created_ms: row.created_ms,
        updated_ms: row.updated_ms,
        active_turn,
        folder: row.folder,
        pinned: row.pinned,
        deleted_ms: row.deleted_ms,
        activity: row.activity,
        revision: row.revision,
    }
}

/// Kept JSON that can't be read any more shows as absent.
fn parse<T: serde::de::DeserializeOwned>(json: Option<String>) -> Option<T> {
    json.and_then(|json| serde_json::from_str(&json).ok())
}

/// Tool calls as they were kept.
pub fn calls(json: Option<String>) -> Vec<ToolCall> {
    parse(json).unwrap_or_default()
}

/// A message with its files.
pub fn message(message: BranchMessage) -> Message {
    let attachments = citations::files(&message);
    let row = message.row;
    Message {
        id: row.id,
        parent: row.parent,
        role: role(row.role),
        text: row.text,
        reasoning: row.reasoning,
        tool_calls: calls(row.tool_calls),
        state: state(row.state),
        error: parse::<ErrorInfo>(row.error),
        model: row.model,
        stats: parse::<TurnStats>(row.stats),
        attachments,
        sources: Vec::new(),
        created_ms: row.created_ms,
        version: message.version,
        versions: message.versions,
    }
}

/// Options of a chat. Absent or unreadable ones are the defaults.
pub fn options(json: Option<String>) -> ConversationOptions {
    parse(json).unwrap_or_default()
}

/// A folder. Reads whether it is a project.
pub fn folder(store: &Session, row: FolderRow) -> contract::Result<Folder> {
    let is_project = store.project(&row.id)?.is_some();
    Ok(Folder { id: row.id, name: row.name, parent: row.parent, is_project })
}

/// A message that a search found.
pub fn hit(hit: SearchHit) -> MessageHit {
    let parts = hit.snippet.into_iter().map(|(text, hit)| SnippetPart { text, hit });
    MessageHit {
        conversation: hit.conversation,
        title: hit.title,
        message: hit.message,
        role: role(hit.role),
        created_ms: hit.created_ms,
        snippet: parts.collect(),
    }
}

fn role(role: session::Role) -> Role {
    match role {
        session::Role::System => Role::System,
        session::Role::User => Role::User,
        session::Role::Assistant => Role::Assistant,
    }
}

fn state(state: session::MessageState) -> MessageState {
    match state {
        session::MessageState::Streaming => MessageState::Streaming,
        session::MessageState::Complete => MessageState::Complete,
        session::MessageState::Stopped => MessageState::Stopped,
        session::MessageState::Interrupted => MessageState::Interrupted,
        session::MessageState::Failed => MessageState::Failed,
    }
}

/// Kept messages that a prompt shows.
pub fn count_ids(messages: &[PromptMessage]) -> u32 {
    u32::try_from(messages.iter().map(|message| message.ids.len()).sum::<usize>()).unwrap_or(u32::MAX)
}

/// Figures of an answer.
pub fn stats(finished: &TurnResult) -> TurnStats {
    TurnStats {
        finish: match finished.finish {
            Finish::Stop if finished.called => Finish::ToolCalls,
            finish => finish,
        },
        prompt_tokens: finished.prompt_tokens,
        reused_tokens: finished.reused_tokens,
        generated_tokens: finished.generated_tokens,
        drafted_tokens: finished.drafted_tokens,
        accepted_tokens: finished.accepted_tokens,
        context_tokens: finished.prompt_tokens.saturating_add(finished.generated_tokens),
        context_limit: finished.context_limit,
        load_ms: finished.load_ms,
        ttft_ms: finished.ttft_ms,
        prefill_tok_s: finished.prefill_tok_s,
        decode_tok_s: finished.decode_tok_s,
        image_tokens: finished.image_tokens,
        image_ms: finished.image_ms,
        is_about: finished.is_about,
        thought_ms: 0.0,
        answered_by: finished.answered_by.clone(),
        stop_index: finished.stop_index,
        once: None,
        guide: finished.guide.clone(),
    }
}

/// A branch as the prompt's history needs it.
pub fn history_messages(branch: FilledBranch) -> impl Iterator<Item = HistoryMessage> {
    let FilledBranch { messages, mut images } = branch;
    messages.into_iter().map(move |BranchMessage { row, logs, .. }| HistoryMessage {
        images: images.remove(&row.id).unwrap_or_default(),
        id: row.id,
        role: role(row.role),
        text: row.text,
        reasoning: row.reasoning,
        is_streaming: row.state == session::MessageState::Streaming,
        tool_calls: calls(row.tool_calls),
        logs: logs.into_iter().map(|log| Ids { fingerprint: log.fingerprint, ids: log.text_ids }).collect(),
    })
}
