//! Streams over HTTP that are opened by GET: the server's own, which says for example that its tools have changed, and the
//! rest of an answer.
//!
//! A server that has no own stream is left alone. A stream that breaks is opened again after its last event, when the
//! server says so or after some seconds.

use std::sync::{Arc, Weak};
use std::time::Duration;

use net::sse::Events;

use super::Http;
use crate::core::Core;

/// Before a stream is opened again, where the server names no time; doubled after each failure.
const REOPEN_DELAY: Duration = Duration::from_secs(3);

/// Failures in a row until the stream is given up. Requests go on without it.
const MAX_FAILURES: u32 = 6;

/// Listens until the session ends.
pub fn follow(http: &Arc<Http>, core: &Arc<Core>) {
    let (this, core) = (Arc::downgrade(http), Arc::clone(core));
    http.spawn_events(async move { listen(&this, &core).await });
}

/// Hears the rest of an answer whose stream ended before it. The server may end a stream at any time and go on in another
/// one; it does so only where it has given an event an id.
pub async fn resume(http: &Arc<Http>, core: &Arc<Core>, id: u64, ended: &Events) {
    let Some(mut last_id) = ended.last_id().map(str::to_owned) else { return };
    let (weak, mut delay, mut n_failures) = (Arc::downgrade(http), ended.retry().unwrap_or(REOPEN_DELAY), 0);
    while core.is_waiting(id) && n_failures < MAX_FAILURES {
        tokio::time::sleep(delay).await;
        n_failures += 1;
        match http.open_events(core, Some(&last_id)).await {
            Ok(Some(mut stream)) => {
                while core.is_waiting(id) && Http::hear_next(&weak, core, &mut stream).await.is_some() {}
                delay = stream.retry().unwrap_or(delay);
                if let Some(newer) = stream.last_id().filter(|newer| *newer != last_id) {
                    (last_id, n_failures) = (newer, 0);
                }
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!("the rest of an answer of {} is out of reach: {error}", core.name())
            }
        }
    }
}

async fn listen(http: &Weak<Http>, core: &Arc<Core>) {
    let (mut last_id, mut delay, mut n_failures) = (None::<String>, REOPEN_DELAY, 0);
    while n_failures < MAX_FAILURES {
        let Some(opening) = http.upgrade() else { return };
        let opened = opening.open_events(core, last_id.as_deref()).await;
        drop(opening);
        match opened {
            Ok(Some(mut stream)) => {
                n_failures = 0;
                while Http::hear_next(http, core, &mut stream).await.is_some() {}
                last_id = stream.last_id().or(last_id);
                delay = stream.retry().unwrap_or(delay);
            }
            Ok(None) => return,
            Err(error) => {
                n_failures += 1;
                tracing::debug!("{} can't be listened to: {error}", core.name());
            }
        }
        tokio::time::sleep(delay.saturating_mul(2_u32.pow(n_failures))).await;
    }
}
