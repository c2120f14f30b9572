//! Giving up a run in its middle: whoever no longer wants its result asks, from any thread, and the run ends between
//! two steps. What it would have brought is lost, nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many ask and have not been heard yet. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    // nothing else is ordered by it: who hears looks at a channel of his own
    n_asking: Arc<AtomicUsize>,
}

impl Interrupt {
    /// One more asks.
    pub fn ask(&self) {
        self.n_asking.fetch_add(1, Ordering::Relaxed);
    }

    /// One of them has been heard. Heard without having asked changes nothing.
    pub fn heard(&self) {
        // where nobody asks there is nothing to take away
        _ = self.n_asking.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    }

    pub fn is_asked(&self) -> bool {
        self.n_asking.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_who_asks_is_heard() {
        let interrupt = Interrupt::default();
        interrupt.heard();
        assert!(!interrupt.is_asked());
        let other = interrupt.clone();
        (0..2).for_each(|_| other.ask());
        interrupt.heard();
        assert!(interrupt.is_asked());
        interrupt.heard();
        assert!(!other.is_asked());
    }
}
