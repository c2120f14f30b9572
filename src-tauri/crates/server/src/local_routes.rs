//! The OpenAI-compatible routes within this process, for programs that have the application: no network, no key.

use std::sync::Arc;

use app::App;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use platform::EventLog;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower_service::Service;

use crate::body::read_any;
use crate::{RouteState, io_runtime, openai};

/// Routes that are called instead of requested.
pub struct LocalRoutes {
    router: Router,
    runtime: Runtime,
}

impl LocalRoutes {
    /// Makes the routes over an application; what it answers is attributed to the application's caller.
    pub fn new(app: App) -> contract::Result<Self> {
        let shared = RouteState {
            app,
            key: "".into(),
            sources: Arc::default(),
            stopping: EventLog::new(1),
            failures: Arc::default(),
            foreign: Arc::default(),
            responses: Arc::default(),
            message_batches: Arc::default(),
            batches: Arc::default(),
            pace: Arc::default(),
            requests: Arc::default(),
            recent: Arc::default(),
            expiries: Arc::default(),
        };
        Ok(Self { router: openai::routes().with_state(shared), runtime: io_runtime()? })
    }

    /// Waits for the answer to a POST request: its status and body. May be called from several threads at once.
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        let request = match request.body(Body::from(body.to_string())) {
            Ok(request) => request,
            Err(error) => return failure(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        let mut router = self.router.clone();
        self.runtime.block_on(async move {
            let Ok(response) = router.call(request).await;
            let status = response.status();
            match read_any(response.into_body()).await {
                Ok(bytes) => match serde_json::from_slice(&bytes) {
                    Ok(value) => (status.as_u16(), value),
                    Err(error) => failure(status, &format!("The answer is not JSON: {error}.")),
                },
                Err(error) => failure(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
            }
        })
    }
}

fn failure(status: StatusCode, message: &str) -> (u16, Value) {
    let error = json!({ "message": message, "type": "server_error", "param": null, "code": "server.local" });
    (status.as_u16(), json!({ "error": error }))
}
