//! How much memory the cards of a test may hold together: what each holds is asked of its driver's allocator.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a card holds, in bytes. None: it was closed.
pub(crate) type Held = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// See the module. As much as there is, unless less is left to them.
pub(super) struct Room {
    most: AtomicU64,
    cards: Mutex<Vec<Held>>,
    most_held: AtomicU64,
}

impl Default for Room {
    fn default() -> Self {
        Self { most: AtomicU64::new(u64::MAX), cards: Mutex::default(), most_held: AtomicU64::new(0) }
    }
}

impl Room {
    /// From here on so many bytes in all; what is held beyond them stays.
    pub fn leave(&self, n_bytes: u64) {
        self.most.store(n_bytes, Ordering::Relaxed);
    }

    pub fn watch(&self, card: Held) {
        self.cards.lock().unwrap_or_else(PoisonError::into_inner).push(card);
    }

    /// Whether so many bytes more fit, which are held then.
    pub fn has(&self, n_bytes: u64) -> bool {
        let mut held = n_bytes;
        self.cards.lock().unwrap_or_else(PoisonError::into_inner).retain(|card| {
            let of_card = card();
            held += of_card.unwrap_or(0);
            of_card.is_some()
        });
        let has = held <= self.most.load(Ordering::Relaxed);
        if has {
            self.most_held.fetch_max(held, Ordering::Relaxed);
        }
        has
    }

    /// The most that was held at a time. (bytes)
    pub fn most_held(&self) -> u64 {
        self.most_held.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_all_cards_hold_counts_until_they_are_closed() {
        let (room, card) = (Room::default(), Arc::new(60));
        room.leave(100);
        assert!(room.has(100) && !room.has(101));
        let held = Arc::downgrade(&card);
        room.watch(Box::new(move || held.upgrade().map(|n| *n)));
        room.watch(Box::new(|| Some(10)));
        assert!(room.has(30) && !room.has(31));
        drop(card);
        assert!(room.has(90) && !room.has(91));
        assert_eq!(room.most_held(), 100);
    }
}
