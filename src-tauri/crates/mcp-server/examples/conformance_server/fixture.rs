//! The content of the fixture server.

use futures_util::StreamExt;
use futures_util::stream;
use mcp_server::{CallNotifiers, Content, ContentChange, ContentChanges};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Tool,
};
use rmcp::service::RequestContext;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::input_required::StateHandles;
use crate::{input_required, prompts, resources, tools};

/// Changes that wait for a client that does not read them.
const MAX_WAITING_CHANGES: usize = 64;

/// What the suite expects of a server.
#[derive(Clone)]
pub struct Fixture {
    pub changes: broadcast::Sender<ContentChange>,
    pub states: StateHandles,
}

impl Default for Fixture {
    fn default() -> Self {
        Self { changes: broadcast::Sender::new(MAX_WAITING_CHANGES), states: StateHandles::default() }
    }
}

impl Content for Fixture {
    const HAS_CHANGING_TOOLS: bool = true;

    fn server_info(&self) -> Implementation {
        Implementation::new("inglenook-conformance", env!("CARGO_PKG_VERSION"))
    }

    fn instructions(&self) -> &'static str {
        "Fixtures of the conformance suite."
    }

    fn tools(&self) -> Vec<Tool> {
        tools::all().into_iter().chain(input_required::tools()).collect()
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        notifiers: CallNotifiers,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if input_required::is_tool(&request.name) {
            return input_required::call(&self.states, &request, context);
        }
        tools::call(self, request, notifiers, context).await
    }

    async fn list_resources(&self, _: Option<String>) -> Result<ListResourcesResult, ErrorData> {
        Ok(resources::list())
    }

    fn resource_templates(&self) -> ListResourceTemplatesResult {
        resources::templates()
    }

    async fn read_resource(&self, uri: String) -> Result<ReadResourceResult, ErrorData> {
        resources::read(&uri)
    }

    async fn list_prompts(&self) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompts::list())
    }

    async fn get_prompt(&self, request: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request)
    }

    async fn complete(&self, request: CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
        let values = ["paris", "park", "party"].map(str::to_owned);
        let fitting = values.into_iter().filter(|value| value.starts_with(&request.argument.value)).collect();
        let completion = CompletionInfo::new(fitting).map_err(|why| ErrorData::internal_error(why, None))?;
        Ok(CompleteResult::new(completion))
    }

    fn changes(&self) -> ContentChanges {
        let next = |mut receiver: broadcast::Receiver<ContentChange>| async move {
            loop {
                match receiver.recv().await {
                    Ok(change) => return Some((vec![change], receiver)),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            }
        };
        stream::unfold(self.changes.subscribe(), next).boxed()
    }
}
