//! Looking at a server: what models it has, and so whether it is there and takes the key. A few hundred bytes.

use std::sync::Arc;
use std::time::Duration;

use super::Desk;
use super::http::{Again, Call, Fault, malformed};
use super::{dialect, endpoints};
use crate::types::ConnectionPurpose;

/// A list takes no longer, unless nobody is there.
const WITHIN: Duration = Duration::from_secs(10);

/// Asks for the list and keeps it.
pub async fn look(desk: &Desk, endpoint: &str) -> Result<(), Fault> {
    let listed = list(desk, endpoint).await;
    let known = &desk.shared.remote;
    match &listed {
        Ok(()) => known.known().pool.worked(endpoint),
        // Being offline says nothing of the server.
        Err(fault) if fault.error.code() == "network.offline" => {}
        Err(fault) => {
            let now = desk.shared.clock.monotonic();
            known.known().pool.failed(endpoint, fault.error.info.clone(), now);
        }
    }
    desk.shared.tell_endpoint(endpoint);
    listed
}

/// As `look`, while something else goes on.
pub fn in_passing(desk: &Desk, endpoint: String) {
    let desk =
        Desk { shared: Arc::clone(&desk.shared), http: desk.http.clone(), events: desk.events.clone() };
    tokio::spawn(async move {
        if let Err(fault) = look(&desk, &endpoint).await {
            tracing::info!(code = fault.error.code(), "looked at in vain: {}", fault.error);
        }
    });
}

async fn list(desk: &Desk, endpoint: &str) -> Result<(), Fault> {
    let elsewhere = |error| Fault { error, again: Again::Elsewhere };
    let row = desk.shared.endpoint_row(endpoint).map_err(elsewhere)?;
    let server = desk.shared.server_of(&row).map_err(elsewhere)?;
    let call = Call {
        address: &server.address,
        url: server.address.route("/models"),
        key: server.key.as_ref(),
        body: None,
        purpose: ConnectionPurpose::ModelList,
        silence: WITHIN,
    };
    let list = desk.http()?.ask(&desk.shared, call).await?.json().await?;
    let Some((server_kind, models)) = dialect::models(&list) else {
        return Err(malformed(&server.address.place(), "it is not a list of models"));
    };
    endpoints::keep_list(&desk.shared, endpoint, server_kind, models).map_err(elsewhere)
}
