//! What `rmcp` asks of a server, whatever it has on offer.

#[expect(deprecated, reason = "revisions before 2026-07-28 have a log")]
use rmcp::model::SetLevelRequestParams;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestMethod, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio_util::sync::CancellationToken;

use crate::client_state::ClientState;
use crate::content::Content;
use crate::notifier::CallNotifiers;
use crate::subscription::{self, EarlyWatches};

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
pub struct McpHandler<C> {
    content: C,
    client: ClientState,
    early_watches: EarlyWatches,
    /// Cancelled once the client has closed its end.
    client_left: CancellationToken,
}

impl<C: Content> McpHandler<C> {
    /// A handler for a client. `client_left` ends its subscriptions; other requests may still be answered.
    pub fn new(content: C, client_left: CancellationToken) -> Self {
        Self { content, client: ClientState::default(), early_watches: EarlyWatches::default(), client_left }
    }

    /// For clients without a handshake: changes of lists come on request of `subscriptions/listen`.
    fn capabilities() -> ServerCapabilities {
        let builder = ServerCapabilities::builder().enable_tools().enable_completions();
        let builder = builder.enable_resources().enable_resources_subscribe().enable_resources_list_changed();
        let builder = builder.enable_prompts().enable_prompts_list_changed();
        if C::HAS_CHANGING_TOOLS { builder.enable_tool_list_changed().build() } else { builder.build() }
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

impl<C: Content> ServerHandler for McpHandler<C> {
    fn get_info(&self) -> ServerConfig {
        let config = ServerConfig::new(Self::capabilities()).with_server_info(self.content.server_info());
        config.with_instructions(self.content.instructions())
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
        let mut result = ListToolsResult::with_all_items(self.content.tools());
        result.ttl_ms = fixed_ttl_ms(&context).filter(|_| !C::HAS_CHANGING_TOOLS);
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.content.tool(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let notifiers = CallNotifiers::of(&context, &self.client);
        tokio::select! {
            outcome = self.content.call_tool(request, notifiers, &context) => outcome,
            () = context.ct.cancelled() => Err(ErrorData::internal_error("The call was cancelled.", None)),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.content.list_resources(request.and_then(|request| request.cursor)).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut result = self.content.resource_templates();
        result.ttl_ms = fixed_ttl_ms(&context);
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.content.read_resource(request.uri).await.map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.client.subscribe(request.uri, || self.content.changes(), &context.peer)
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
        self.early_watches.begin(&self.content);
        Some(subscription::accepted(requested, &Self::capabilities()))
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
        self.content.list_prompts().await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.content.get_prompt(request).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.content.complete(request).await
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
