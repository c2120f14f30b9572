//! A growing list of events, and watchers that follow it from any position at their own pace. A
//! watcher waits by a `Waker`: async code polls it, plain threads block on it; waiting costs
//! nothing. A watcher that falls behind the retained events ends early instead of missing some.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Events in order; shared by its writer and its watchers.
pub struct EventLog<E> {
    inner: Mutex<LogState<E>>,
}

struct LogState<E> {
    events: VecDeque<E>,
    /// How many were let go before `events[0]`.
    n_gone: u64,
    n_kept: usize,
    is_closed: bool,
    n_watches: u64,
    /// Those who wait, each once, by the number of their watch.
    wakers: BTreeMap<u64, Waker>,
}

impl<E> EventLog<E> {
    fn lock(&self) -> MutexGuard<'_, LogState<E>> {
        // What is behind the lock is whole after every statement.
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<E: Clone> EventLog<E> {
    /// Keeps the last `n_kept` events for those who come or read later.
    pub fn new(n_kept: usize) -> Arc<Self> {
        let inner = LogState {
            events: VecDeque::new(),
            n_gone: 0,
            n_kept,
            is_closed: false,
            n_watches: 0,
            wakers: BTreeMap::new(),
        };
        Arc::new(Self { inner: Mutex::new(inner) })
    }

    /// `make` gets the number of events before this one.
    pub fn push(&self, make: impl FnOnce(u64) -> E) {
        let mut inner = self.lock();
        let n_before = inner.n_gone + inner.events.len() as u64;
        inner.events.push_back(make(n_before));
        if inner.events.len() > inner.n_kept {
            inner.events.pop_front();
            inner.n_gone += 1;
        }
        let wakers = std::mem::take(&mut inner.wakers);
        drop(inner);
        wakers.into_values().for_each(Waker::wake);
    }

    /// No more events: watchers end when they have read all.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.is_closed = true;
        let wakers = std::mem::take(&mut inner.wakers);
        drop(inner);
        wakers.into_values().for_each(Waker::wake);
    }

    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// The newest event.
    pub fn last(&self) -> Option<E> {
        self.lock().events.back().cloned()
    }

    /// How many events there have been.
    pub fn count(&self) -> u64 {
        let inner = self.lock();
        inner.n_gone + inner.events.len() as u64
    }
}

/// One watcher's place in a feed.
pub struct Watch<E> {
    feed: Arc<EventLog<E>>,
    /// Its number in the feed.
    id: u64,
    /// Events read or skipped.
    n_read: u64,
}

impl<E: Clone> Watch<E> {
    /// Follows from after the first `n_read` events.
    pub fn new(feed: &Arc<EventLog<E>>, n_read: u64) -> Self {
        let mut inner = feed.lock();
        let id = inner.n_watches;
        inner.n_watches += 1;
        Self { feed: Arc::clone(feed), id, n_read }
    }

    /// All events since the last call; None after the last one.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<E>>> {
        let mut inner = self.feed.lock();
        let Some(at) = self.n_read.checked_sub(inner.n_gone) else { return Poll::Ready(None) };
        let new: Vec<E> =
            inner.events.iter().skip(usize::try_from(at).unwrap_or(usize::MAX)).cloned().collect();
        if !new.is_empty() {
            self.n_read += new.len() as u64;
            return Poll::Ready(Some(new));
        }
        if inner.is_closed {
            return Poll::Ready(None);
        }
        let earlier = inner.wakers.insert(self.id, context.waker().clone());
        drop(inner);
        // With it a task may end that watches this feed too.
        drop(earlier);
        Poll::Pending
    }

    /// As `poll_next`, waiting.
    pub fn next_blocking(&mut self) -> Option<Vec<E>> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match self.poll_next(&mut context) {
                Poll::Ready(events) => return events,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

/// A feed may say nothing for as long as the program runs. The waker of a watcher that is gone must not stay in it: with
/// the waker stays the memory of its task.
impl<E> Drop for Watch<E> {
    fn drop(&mut self) {
        let waker = self.feed.lock().wakers.remove(&self.id);
        // With it a task may end that watches this feed too.
        drop(waker);
    }
}

impl<E: Clone> Iterator for Watch<E> {
    type Item = Vec<E>;

    fn next(&mut self) -> Option<Vec<E>> {
        self.next_blocking()
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn every_watcher_sees_all_from_its_place() {
        let feed = EventLog::new(usize::MAX);
        feed.push(|n| n + 1);
        let late = Watch::new(&feed, 1);
        let threads: Vec<_> = (0..3)
            .map(|after| {
                let watch = Watch::new(&feed, after);
                std::thread::spawn(move || watch.flatten().collect::<Vec<u64>>())
            })
            .collect();
        for _ in 0..100 {
            feed.push(|n| n + 1);
        }
        feed.close();
        for (after, thread) in threads.into_iter().enumerate() {
            assert_eq!(thread.join().unwrap(), (after as u64 + 1..=101).collect::<Vec<_>>());
        }
        assert_eq!(late.flatten().count(), 100);
    }

    /// Counts how often it is woken.
    #[derive(Default)]
    struct WakeCount(AtomicU32);

    impl Wake for WakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_watcher_that_is_gone_leaves_nothing_in_the_feed() {
        let feed = EventLog::<u64>::new(usize::MAX);
        let count = Arc::<WakeCount>::default();
        for _ in 0..1000 {
            let waker = Waker::from(Arc::clone(&count));
            assert!(Watch::new(&feed, 0).poll_next(&mut Context::from_waker(&waker)).is_pending());
        }
        assert_eq!(Arc::strong_count(&count), 1);
        feed.push(|n| n);
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_watcher_that_is_polled_by_another_task_wakes_that_one_alone() {
        let feed = EventLog::<u64>::new(usize::MAX);
        let mut watch = Watch::new(&feed, 0);
        let counts = [Arc::<WakeCount>::default(), Arc::default()];
        for count in &counts {
            let waker = Waker::from(Arc::clone(count));
            assert!(watch.poll_next(&mut Context::from_waker(&waker)).is_pending());
        }
        feed.push(|n| n);
        assert_eq!(counts.map(|count| count.0.load(Ordering::Relaxed)), [0, 1]);
    }

    #[test]
    fn a_watcher_that_fell_behind_ends() {
        let feed = EventLog::new(2);
        let mut behind = Watch::new(&feed, 0);
        let mut following = Watch::new(&feed, 0);
        feed.push(|n| n);
        assert_eq!(following.next_blocking(), Some(vec![0]));
        feed.push(|n| n);
        feed.push(|n| n);
        assert_eq!(behind.next_blocking(), None);
        assert_eq!(following.next_blocking(), Some(vec![1, 2]));
    }
}
