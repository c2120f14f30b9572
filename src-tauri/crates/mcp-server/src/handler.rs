//! What `rmcp` asks of this server: each method of the protocol is one use case of `app`.

use app::App;
#[expect(deprecated, reason = "revisions before 2026-07-28 have a log")]
use rmcp::model::SetLevelRequestParams;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, CustomRequest, CustomResult, DiscoverResult, ErrorCode, ErrorData, GetPromptRequestParams,
    GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::client_state::ClientState;
use crate::notifier::CallNotifiers;
use crate::subscription::{self, EarlyWatches};
use crate::tools::ToolName;
use crate::{calls, prompts, resources};

const INSTRUCTIONS: &str = "Language models that run on this computer, and the chats saved with them. \
    `generate_text` and `chat` answer; `list_models` says with what. Chats are resources, read as Markdown.";

/// How long clients may keep what never changes while this program runs, in milliseconds.
const FIXED_TTL_MS: u64 = 3_600_000;

/// Methods whose parameters are checked: `rmcp` takes a request with wrong ones for one that it does not know.
const METHODS_WITH_PARAMS: [&str; 6] = [
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "resources/read",
    "prompts/get",
    "completion/complete",
];

/// The same, of revisions with a handshake.
const HANDSHAKE_METHODS: [&str; 4] =
    ["initialize", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"];

/// Serves one client.
pub struct McpHandler {
    app: App,
    client: ClientState,
    early_watches: EarlyWatches,
    /// Cancelled once the client has closed its end.
    client_left: CancellationToken,
}

impl McpHandler {
    /// A handler for a client. `client_left` ends its subscriptions; other requests may still be answered.
    pub fn new(app: App, client_left: CancellationToken) -> Self {
        Self { app, client: ClientState::default(), early_watches: EarlyWatches::default(), client_left }
    }

    /// Runs what waits for the disk away from the threads of the network.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&App) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let app = self.app.clone();
        let joined = tokio::task::spawn_blocking(move || work(&app)).await;
        joined.unwrap_or_else(|panic| {
            Err(ErrorData::internal_error(format!("A bug in Inglenook: {panic}."), None))
        })
    }
}

/// Whether a request stands by itself, as in the revisions without a handshake.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|revision| !revision.has_initialize())
}

/// How long an answer that never changes may be kept. Earlier revisions have no such field.
fn fixed_ttl_ms(context: &RequestContext<RoleServer>) -> Option<u64> {
    is_stateless(context).then_some(FIXED_TTL_MS)
}

/// For clients that shake hands: they subscribe to single resources, and have a log.
#[expect(deprecated, reason = "revisions before 2026-07-28 have a log")]
fn handshake_capabilities() -> ServerCapabilities {
    let builder = ServerCapabilities::builder().enable_tools().enable_completions().enable_prompts();
    builder.enable_resources().enable_resources_subscribe().enable_logging().build()
}

impl ServerHandler for McpHandler {
    /// For clients without a handshake: changes of lists come on request of `subscriptions/listen`.
    fn get_info(&self) -> ServerConfig {
        let builder = ServerCapabilities::builder().enable_tools().enable_completions();
        let builder = builder.enable_resources().enable_resources_subscribe().enable_resources_list_changed();
        let capabilities = builder.enable_prompts().enable_prompts_list_changed().build();
        let server = Implementation::new("inglenook", env!("CARGO_PKG_VERSION")).with_title("Inglenook");
        ServerConfig::new(capabilities).with_server_info(server).with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.negotiate_initialize(&request)?;
        context.peer.set_peer_info(request);
        result.capabilities = handshake_capabilities();
        Ok(result)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let revisions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(revisions, self.get_info()).with_ttl_ms(FIXED_TTL_MS))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut result = ListToolsResult::with_all_items(ToolName::ALL.map(ToolName::definition).to_vec());
        result.ttl_ms = fixed_ttl_ms(&context);
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        ToolName::of_name(name).map(ToolName::definition)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = ToolName::of_name(&request.name) else {
            let message = format!("There is no tool {}. `tools/list` gives their names.", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let notifiers = CallNotifiers::of(&context, &self.client);
        let outcome = tokio::select! {
            outcome = calls::call(&self.app, tool, arguments, notifiers) => outcome,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("The call was cancelled.", None)),
        };
        let result = outcome.unwrap_or_else(|error| {
            let text = format!("{} {} ({})", error.message(), error.remedy(), error.code());
            CallToolResult::error(vec![ContentBlock::text(text)])
        });
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        self.blocking(move |app| resources::list(app, cursor.as_deref())).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut result = resources::templates();
        result.ttl_ms = fixed_ttl_ms(&context);
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.blocking(move |app| resources::read(app, &request.uri)).await.map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client.subscribe(request.uri, &self.app, &context.peer)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client.unsubscribe(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.early_watches.begin(&self.app);
        Some(subscription::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let Some(watch) = self.early_watches.take() else {
            return Err(ErrorData::internal_error("A bug in Inglenook: no watch was begun.", None));
        };
        tokio::select! {
            () = subscription::tell(watch, &context) => {}
            () = context.cancelled() => {}
            () = self.client_left.cancelled() => {}
        }
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.blocking(prompts::list).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.blocking(move |app| prompts::get(app, &request.name)).await.map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.blocking(move |app| prompts::complete(app, &request)).await
    }

    #[expect(deprecated, reason = "revisions before 2026-07-28 have a log")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_stateless(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.client.set_log_level(request.level);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        let is_known = METHODS_WITH_PARAMS.contains(&method.as_str())
            || !is_stateless(&context) && HANDSHAKE_METHODS.contains(&method.as_str());
        if is_known {
            let message = format!("The parameters of {method} are wrong, or missing.");
            return Err(ErrorData::invalid_params(message, None));
        }
        let message = format!("This server has no method {method}.");
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }
}
