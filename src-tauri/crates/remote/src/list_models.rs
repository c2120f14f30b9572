//! Probes a server: its list of models shows that it is reachable and accepts the key. A few
//! hundred bytes.

use std::time::Duration;

use super::RemoteContext;
use super::dialect;
use super::fault::{Fault, RetryAdvice, malformed};
use super::http::HttpCall;
use contract::ErrorKind;
use contract::types::ConnectionPurpose;

/// Timeout for a list; a server that takes longer counts as unreachable.
const WITHIN: Duration = Duration::from_secs(10);

/// Codes of servers that are there, but don't list their models.
const HAS_NO_LIST: [&str; 5] =
    ["remote.no_route", "remote.malformed", "remote.moved", "remote.web_page", "remote.model_gone"];

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
    let elsewhere = |error| Fault::from_error(RetryAdvice::Elsewhere, error);
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
    let place = server.address.place();
    let listed = async {
        let list = context.http()?.ask(&context.gate, call).await?.json().await?;
        dialect::models(&list).ok_or_else(|| malformed(&place, "it is not a list of models"))
    };
    match listed.await {
        Ok((kind, models)) => context.directory.keep_models(endpoint, kind, models).map_err(elsewhere),
        // It answers, and the user knows its models.
        Err(fault) if row.has_typed && HAS_NO_LIST.contains(&fault.error.code()) => Ok(()),
        Err(fault) if ["remote.no_route", "remote.malformed"].contains(&fault.error.code()) => {
            Err(no_list(&place, fault))
        }
        Err(fault) => Err(fault),
    }
}

/// The server may answer all the same.
fn no_list(place: &str, fault: Fault) -> Fault {
    let message = format!("{place} doesn't list its models. {}", fault.error.message());
    let remedy = "Check the address (most end with /v1), or enter the name of a model (nook endpoints update ID --model NAME).";
    Fault::new(fault.again, ErrorKind::NotFound, "remote.no_list", message, remedy)
}
