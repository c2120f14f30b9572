//! Probes a server: its list of models shows that it is reachable and accepts the key. A few
//! hundred bytes.

use std::time::Duration;

use super::RemoteContext;
use super::dialect;
use super::http::{Fault, HttpCall, RetryAdvice, malformed};
use contract::types::ConnectionPurpose;

/// Timeout for a list; a server that takes longer counts as unreachable.
const WITHIN: Duration = Duration::from_secs(10);

/// Asks for the list and keeps it.
pub async fn list_models(context: &RemoteContext, endpoint: &str) -> Result<(), Fault> {
    let listed = list(context, endpoint).await;
    let known = &context.remote;
    match &listed {
        Ok(()) => known.known().pool.worked(endpoint),
        // Being offline says nothing of the server.
        Err(fault) if fault.error.code() == "network.offline" => {}
        Err(fault) => {
            let now = context.clock.monotonic();
            known.known().pool.failed(endpoint, fault.error.info.clone(), now);
        }
    }
    context.directory.health_changed(endpoint);
    listed
}

/// As `list_models`, while something else goes on.
pub fn list_in_background(context: &RemoteContext, endpoint: String) {
    let context = context.clone();
    tokio::spawn(async move {
        if let Err(fault) = list_models(&context, &endpoint).await {
            tracing::info!(code = fault.error.code(), "looked at in vain: {}", fault.error);
        }
    });
}

async fn list(context: &RemoteContext, endpoint: &str) -> Result<(), Fault> {
    let elsewhere = |error| Fault { error, again: RetryAdvice::Elsewhere };
    let row = context.directory.endpoint(endpoint).map_err(elsewhere)?;
    let server = context.server_of(&row).map_err(elsewhere)?;
    let call = HttpCall {
        address: &server.address,
        url: server.address.route("/models"),
        key: server.key.as_ref(),
        body: None,
        purpose: ConnectionPurpose::ModelList,
        silence: WITHIN,
    };
    let list = context.http()?.ask(&context.gate, call).await?.json().await?;
    let Some((server_kind, models)) = dialect::models(&list) else {
        return Err(malformed(&server.address.place(), "it is not a list of models"));
    };
    context.directory.keep_models(endpoint, server_kind, models).map_err(elsewhere)
}
