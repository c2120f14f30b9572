//! The server's own stream over HTTP (GET): what it says without being asked, such as that its tools have changed.
//!
//! A server without one is left alone. A stream that breaks is opened again after its last event.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::core::Core;
use super::http::Http;

/// Before a stream is opened again; doubled after each failure.
const REOPEN_DELAY: Duration = Duration::from_secs(3);

/// Failures in a row until the stream is given up. Requests go on without it.
const MAX_FAILURES: u32 = 6;

/// Listens until the session ends.
pub fn follow(http: &Arc<Http>, core: &Arc<Core>) {
    let (this, core) = (Arc::downgrade(http), Arc::clone(core));
    http.spawn_events(async move { listen(&this, &core).await });
}

async fn listen(http: &Weak<Http>, core: &Arc<Core>) {
    let (mut last_id, mut n_failures) = (None::<String>, 0);
    while n_failures < MAX_FAILURES {
        let Some(opening) = http.upgrade() else { return };
        let opened = opening.open_events(core, last_id.as_deref()).await;
        drop(opening);
        match opened {
            Ok(Some(mut stream)) => {
                n_failures = 0;
                while Http::hear_next(http, core, &mut stream).await.is_some() {}
                last_id = stream.last_id().or(last_id);
            }
            Ok(None) => return,
            Err(error) => {
                n_failures += 1;
                tracing::debug!("{} can't be listened to: {error}", core.name());
            }
        }
        tokio::time::sleep(REOPEN_DELAY * 2_u32.pow(n_failures)).await;
    }
}
