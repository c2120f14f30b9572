//! What the application offers: each method of the protocol is one use case of `app`.

use std::collections::HashMap;

use app::App;
use contract::types::AppEvent;
use futures_util::StreamExt;
use futures_util::stream;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Tool,
};
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::content::Content;
use crate::content_change::{ContentChange, ContentChanges};
use crate::notifier::CallNotifiers;
use crate::tools::ToolName;
use crate::{calls, prompts, resources};

const INSTRUCTIONS: &str = "Language models that run on this computer, and the chats saved with them. \
    `generate_text` and `chat` answer; `list_models` says with what. Chats are resources, read as Markdown.";

/// The setting with the user's own prompts.
const PROMPTS_SETTING: &str = "prompts";

/// Models and saved chats.
#[derive(Clone)]
pub struct AppContent(pub App);

impl AppContent {
    /// Runs what waits for the disk away from the threads of the network.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&App) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let app = self.0.clone();
        let joined = tokio::task::spawn_blocking(move || work(&app)).await;
        joined.unwrap_or_else(|panic| {
            Err(ErrorData::internal_error(format!("A bug in Inglenook: {panic}."), None))
        })
    }
}

impl Content for AppContent {
    const HAS_CHANGING_TOOLS: bool = false;

    fn server_info(&self) -> Implementation {
        Implementation::new("inglenook", env!("CARGO_PKG_VERSION")).with_title("Inglenook")
    }

    fn instructions(&self) -> &'static str {
        INSTRUCTIONS
    }

    fn tools(&self) -> Vec<Tool> {
        ToolName::ALL.map(ToolName::definition).to_vec()
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        ToolName::of_name(name).map(ToolName::definition)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        notifiers: CallNotifiers,
        _: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = ToolName::of_name(&request.name) else {
            let message = format!("There is no tool {}. `tools/list` gives their names.", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let result = calls::call(&self.0, tool, arguments, notifiers).await.unwrap_or_else(|error| {
            let text = format!("{} {} ({})", error.message(), error.remedy(), error.code());
            CallToolResult::error(vec![ContentBlock::text(text)])
        });
        Ok(result.into())
    }

    async fn list_resources(&self, cursor: Option<String>) -> Result<ListResourcesResult, ErrorData> {
        self.blocking(move |app| resources::list(app, cursor.as_deref())).await
    }

    fn resource_templates(&self) -> ListResourceTemplatesResult {
        resources::templates()
    }

    async fn read_resource(&self, uri: String) -> Result<ReadResourceResult, ErrorData> {
        self.blocking(move |app| resources::read(app, &uri)).await
    }

    async fn list_prompts(&self) -> Result<ListPromptsResult, ErrorData> {
        self.blocking(prompts::list).await
    }

    async fn get_prompt(&self, request: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
        self.blocking(move |app| prompts::get(app, &request.name)).await.map(Into::into)
    }

    async fn complete(&self, request: CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
        self.blocking(move |app| prompts::complete(app, &request)).await
    }

    fn changes(&self) -> ContentChanges {
        let state = (self.0.watch_app(), ChangeTracker::default());
        let next = stream::unfold(state, |(mut watch, mut tracker)| async move {
            let events = std::future::poll_fn(|context| watch.poll_next(context)).await?;
            let changes = events.iter().flat_map(|event| tracker.changes(event)).collect();
            Some((changes, (watch, tracker)))
        });
        next.boxed()
    }
}

/// Finds what an event changes.
#[derive(Default)]
struct ChangeTracker {
    /// Titles of the chats that have changed, by id. The list changes where a chat comes, goes, or has another title.
    titles: HashMap<String, String>,
}

impl ChangeTracker {
    fn changes(&mut self, event: &AppEvent) -> Vec<ContentChange> {
        let (id, is_other_list) = match event {
            AppEvent::ConversationChanged { conversation } => {
                let before = self.titles.insert(conversation.id.clone(), conversation.title.clone());
                (&conversation.id, before.as_ref() != Some(&conversation.title))
            }
            AppEvent::ConversationRemoved { id } => {
                self.titles.remove(id);
                (id, true)
            }
            AppEvent::SettingChanged { row } if row.key == PROMPTS_SETTING => {
                return vec![ContentChange::PromptList];
            }
            _ => return Vec::new(),
        };
        let resource = ContentChange::Resource(resources::uri_of(id));
        [Some(resource), is_other_list.then_some(ContentChange::ResourceList)].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_chats_change_resources() {
        let mut tracker = ChangeTracker::default();
        let changed = AppEvent::ConversationChanged { conversation: resources::test_chat(1) };
        let resource = ContentChange::Resource(resources::uri_of("1"));
        let both = [resource.clone(), ContentChange::ResourceList];
        assert_eq!(tracker.changes(&changed), both);
        assert_eq!(tracker.changes(&changed), [resource], "it has the same title");
        assert_eq!(tracker.changes(&AppEvent::ConversationRemoved { id: "1".into() }), both);
        assert_eq!(tracker.changes(&AppEvent::FolderRemoved { id: "1".into() }), []);
    }
}
