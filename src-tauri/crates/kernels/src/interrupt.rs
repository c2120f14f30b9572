//! Interrupts a run from another thread. The run ends between two steps; only its own result is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts requests to interrupt that have not been handled yet. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    // relaxed: the data behind a request travels through a separate channel
    n_requests: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Requests an interruption.
    pub fn request(&self) {
        self.n_requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Marks one request as handled. Without a pending request this does nothing.
    pub fn acknowledge(&self) {
        // an error means that the count was zero
        _ = self.n_requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    }

    /// Whether any request is pending.
    pub fn is_requested(&self) -> bool {
        self.n_requests.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_acknowledged_separately() {
        let interrupt = Interrupt::default();
        interrupt.acknowledge();
        assert!(!interrupt.is_requested());
        let other = interrupt.clone();
        (0..2).for_each(|_| other.request());
        interrupt.acknowledge();
        assert!(interrupt.is_requested());
        interrupt.acknowledge();
        assert!(!other.is_requested());
    }
}
