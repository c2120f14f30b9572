//! How fast batches go on: clients who wait come first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use app::App;
use tokio::time::sleep;

/// Requests of one batch that are answered at the same time. Clients who wait have the rest.
pub const AT_ONCE: usize = 4;

/// Time between two looks at whether clients wait.
const POLL: Duration = Duration::from_millis(50);

/// Looks before a request of a batch is answered anyway, after 10 seconds: a server that is never idle still gets
/// through its batches.
const MAX_POLLS: usize = 200;

/// The requests of batches that are being answered.
#[derive(Debug, Default)]
pub struct BatchPace {
    n_running: AtomicUsize,
}

/// A request of a batch that is being answered, until it is dropped.
#[derive(Debug)]
pub struct BatchTicket(Arc<BatchPace>);

impl Drop for BatchTicket {
    fn drop(&mut self) {
        self.0.n_running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl BatchPace {
    /// Waits until no client does, for `MAX_POLLS` looks at most.
    pub async fn begin(self: &Arc<Self>, app: &App) -> BatchTicket {
        for _ in 0..MAX_POLLS {
            if app.n_open_answers() <= self.n_running.load(Ordering::Relaxed) {
                break;
            }
            sleep(POLL).await;
        }
        self.n_running.fetch_add(1, Ordering::Relaxed);
        BatchTicket(Arc::clone(self))
    }
}
