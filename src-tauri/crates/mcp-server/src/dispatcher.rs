//! The methods of the protocol, whatever carries them.

use app::App;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use crate::client_state::{ClientState, LogLevel};
use crate::notifier::CallNotifiers;
use crate::revision::Revision;
use crate::rpc::{
    INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, RpcError, RpcRequest,
};
use crate::tools::ToolName;
use crate::{calls, lifecycle, prompts, resources, subscription};

/// Answers requests. Cheap to clone.
#[derive(Clone)]
pub struct RequestDispatcher {
    app: App,
}

impl RequestDispatcher {
    pub fn new(app: App) -> Self {
        Self { app }
    }

    /// Answers a request. Its notifications go to `outbox` before the answer. Dropping the future cancels it.
    pub async fn answer(
        &self,
        request: &RpcRequest,
        (revision, client): (Revision, &ClientState),
        outbox: &Sender<Value>,
    ) -> Result<Value, RpcError> {
        let method = request.method.as_str();
        let result = match method {
            "ping" if !revision.is_stateless() => json!({}),
            "server/discover" if revision.is_stateless() => lifecycle::discover(revision),
            "logging/setLevel" if !revision.is_stateless() => {
                client.set_log_level(LogLevel::of_value(request.params.get("level"))?);
                json!({})
            }
            "tools/list" => json!({ "tools": ToolName::ALL.map(ToolName::description_value) }),
            "tools/call" => self.call_tool(request, client, outbox).await?,
            "resources/list" => {
                let cursor = request.params.get("cursor").and_then(Value::as_str).map(str::to_owned);
                self.blocking(move |app| resources::list(app, cursor.as_deref())).await?
            }
            "resources/templates/list" => resources::templates(),
            "resources/read" => self.read_resource(request, revision).await?,
            "resources/subscribe" if !revision.is_stateless() => {
                client.subscribe(text_param(request, "uri")?)?;
                json!({})
            }
            subscription::LISTEN if revision.is_stateless() => {
                subscription::listen(&self.app, request, outbox).await?
            }
            "resources/unsubscribe" if !revision.is_stateless() => {
                client.unsubscribe(text_param(request, "uri")?);
                json!({})
            }
            "prompts/list" => self.blocking(prompts::list).await?,
            "prompts/get" => {
                let name = text_param(request, "name")?.to_owned();
                self.blocking(move |app| prompts::get(app, &name)).await?
            }
            "completion/complete" => {
                let params = request.params.clone();
                self.blocking(move |app| prompts::complete(app, &params)).await?
            }
            other => {
                let message = format!("This server has no method {other}.");
                return Err(RpcError::new(METHOD_NOT_FOUND, message));
            }
        };
        Ok(lifecycle::complete(method, revision, result))
    }

    /// Tells a client of every change of a resource that it watches, until it leaves.
    pub async fn push_changes(&self, client: &ClientState, outbox: &Sender<Value>) {
        client.push_changes(&self.app, outbox).await;
    }

    async fn call_tool(
        &self,
        request: &RpcRequest,
        client: &ClientState,
        outbox: &Sender<Value>,
    ) -> Result<Value, RpcError> {
        let Some(name) = request.params.get("name").and_then(Value::as_str) else {
            return Err(RpcError::new(INVALID_PARAMS, "`name` of the tool is missing."));
        };
        let Some(tool) = ToolName::of_name(name) else {
            let message = format!("There is no tool {name}. `tools/list` gives their names.");
            return Err(RpcError::new(INVALID_PARAMS, message));
        };
        let arguments = match request.params.get("arguments") {
            None => Value::Object(serde_json::Map::new()),
            Some(arguments @ Value::Object(_)) => arguments.clone(),
            Some(_) => return Err(RpcError::new(INVALID_PARAMS, "`arguments` is an object.")),
        };
        let notifiers = CallNotifiers::of(request, client, outbox);
        let outcome = calls::call(&self.app, tool, arguments, notifiers).await;
        Ok(outcome.unwrap_or_else(|error| {
            let text = format!("{} {} ({})", error.message(), error.remedy(), error.code());
            json!({ "content": [{ "type": "text", "text": text }], "isError": true })
        }))
    }

    async fn read_resource(&self, request: &RpcRequest, revision: Revision) -> Result<Value, RpcError> {
        let Some(uri) = request.params.get("uri").and_then(Value::as_str).map(str::to_owned) else {
            return Err(RpcError::new(INVALID_PARAMS, "`uri` of the resource is missing."));
        };
        let read = self.blocking(move |app| resources::read(app, &uri)).await;
        read.map_err(|mut error| {
            if error.code == RESOURCE_NOT_FOUND && revision.is_stateless() {
                error.code = INVALID_PARAMS;
            }
            error
        })
    }

    /// Runs what waits for the disk away from the threads of the network.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&App) -> Result<T, RpcError> + Send + 'static,
    ) -> Result<T, RpcError> {
        let app = self.app.clone();
        let joined = tokio::task::spawn_blocking(move || work(&app)).await;
        joined.unwrap_or_else(|panic| {
            Err(RpcError::new(INTERNAL_ERROR, format!("A bug in Inglenook: {panic}.")))
        })
    }
}

fn text_param<'a>(request: &'a RpcRequest, name: &str) -> Result<&'a str, RpcError> {
    let value = request.params.get(name).and_then(Value::as_str);
    value.ok_or_else(|| RpcError::new(INVALID_PARAMS, format!("`{name}` is missing.")))
}
