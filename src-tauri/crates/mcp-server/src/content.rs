//! What a server has on offer: tools, resources, prompts, completions, and their changes.
//!
//! Transports, sessions, subscriptions and limits are the same whatever it is.

use std::future::Future;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Tool,
};
use rmcp::service::RequestContext;

use crate::content_change::ContentChanges;
use crate::notifier::CallNotifiers;

/// What a server has on offer. Clones share it; each client has one.
pub trait Content: Clone + Send + Sync + 'static {
    /// Whether the list of tools changes while the server runs.
    const HAS_CHANGING_TOOLS: bool;

    /// The server's name and version.
    fn server_info(&self) -> Implementation;

    /// How a model makes use of the server.
    fn instructions(&self) -> &'static str;

    /// All tools.
    fn tools(&self) -> Vec<Tool>;

    /// The tool of a name.
    fn tool(&self, name: &str) -> Option<Tool>;

    /// Calls a tool, which may not exist. Dropping the future cancels the call.
    fn call_tool(
        &self,
        request: CallToolRequestParams,
        notifiers: CallNotifiers,
        context: &RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send;

    /// One page of resources.
    fn list_resources(
        &self,
        cursor: Option<String>,
    ) -> impl Future<Output = Result<ListResourcesResult, ErrorData>> + Send;

    /// Forms of the URIs of resources.
    fn resource_templates(&self) -> ListResourceTemplatesResult;

    /// Reads a resource, which may not exist.
    fn read_resource(
        &self,
        uri: String,
    ) -> impl Future<Output = Result<ReadResourceResult, ErrorData>> + Send;

    /// All prompts.
    fn list_prompts(&self) -> impl Future<Output = Result<ListPromptsResult, ErrorData>> + Send;

    /// One prompt, which may not exist.
    fn get_prompt(
        &self,
        request: GetPromptRequestParams,
    ) -> impl Future<Output = Result<GetPromptResponse, ErrorData>> + Send;

    /// Values for an argument that the user has begun to write.
    fn complete(
        &self,
        request: CompleteRequestParams,
    ) -> impl Future<Output = Result<CompleteResult, ErrorData>> + Send;

    /// All changes from now on, several at a time. Ends with the content.
    fn changes(&self) -> ContentChanges;
}
