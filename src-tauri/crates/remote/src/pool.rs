//! Chooses which of several servers of one name is next: round-robin among healthy ones. A failed
//! one rests with growing backoff, then gets a light probe; it is still tried if no other is left.
//! Pure: time is an argument.

use std::collections::HashMap;
use std::time::Duration;

use contract::types::ErrorInfo;

/// How long a server rests after its first failure, and at most.
const FIRST_REST: Duration = Duration::from_secs(1);
const MAX_REST: Duration = Duration::from_secs(60);

/// The health of each server, by its id. Servers without a request so far are absent.
#[derive(Debug, Default)]
pub struct Pool {
    health: HashMap<String, Health>,
    /// Whose turn it is, by name.
    turns: HashMap<String, usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Health {
    Up,
    Down {
        error: ErrorInfo,
        n_failures: u32,
        /// It rests until then.
        until: Duration,
        is_looked_at: bool,
    },
}

impl Pool {
    /// The order in which to try `ids` of one name.
    pub fn order(&mut self, name: &str, ids: &[String], now: Duration) -> Vec<usize> {
        if ids.is_empty() {
            return Vec::new();
        }
        let turn = self.turns.entry(name.to_owned()).or_insert(0);
        let first = *turn % ids.len();
        *turn = first + 1;
        let mut order: Vec<usize> = (0..ids.len()).map(|at| (first + at) % ids.len()).collect();
        // Stable: equally healthy ones keep their turns.
        order.sort_by_key(|&at| match self.health.get(&ids[at]) {
            None | Some(Health::Up) => Duration::ZERO,
            Some(Health::Down { until, .. }) => (*until).max(now) + Duration::from_nanos(1),
        });
        order
    }

    /// It answered.
    pub fn worked(&mut self, id: &str) {
        self.health.insert(id.to_owned(), Health::Up);
    }

    /// The server failed, through its own fault.
    pub fn failed(&mut self, id: &str, error: ErrorInfo, now: Duration) {
        let n_failures = match self.health.get(id) {
            Some(Health::Down { n_failures, .. }) => n_failures.saturating_add(1),
            Some(Health::Up) | None => 1,
        };
        let rest = FIRST_REST.saturating_mul(1 << (n_failures - 1).min(16)).min(MAX_REST);
        let until = now.saturating_add(rest);
        self.health.insert(id.to_owned(), Health::Down { error, n_failures, until, is_looked_at: false });
    }

    /// Nothing is known of it: its address or key is another now.
    pub fn forget(&mut self, id: &str) {
        self.health.remove(id);
    }

    /// Those of `ids` whose rest is over and that have no probe in progress: the caller probes
    /// them.
    pub fn take_due(&mut self, ids: &[String], now: Duration) -> Vec<String> {
        let mut due = Vec::new();
        for id in ids {
            if let Some(Health::Down { until, is_looked_at, .. }) = self.health.get_mut(id)
                && *until <= now
                && !std::mem::replace(is_looked_at, true)
            {
                due.push(id.clone());
            }
        }
        due
    }

    /// None: no request so far.
    pub fn health(&self, id: &str) -> Option<&Health> {
        self.health.get(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn error() -> ErrorInfo {
        ErrorInfo { code: "remote.unreachable".into(), message: "x".into(), remedy: "y".into(), action: None }
    }

    #[test]
    fn by_turns_among_those_that_work() {
        let ids: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
        let mut pool = Pool::default();
        let first = |pool: &mut Pool, now| pool.order("lab", &ids, now)[0];
        assert_eq!([0, 1, 2, 0].map(|_| first(&mut pool, s(0))), [0, 1, 2, 0]);
        pool.failed("b", error(), s(10));
        let order = pool.order("lab", &ids, s(10));
        assert_eq!(order, [2, 0, 1], "its turn goes to the next, and it comes last");
        assert_eq!([0, 0, 0, 0].map(|_| first(&mut pool, s(10))), [2, 0, 2, 2]);
        pool.worked("b");
        assert!((0..3).map(|_| first(&mut pool, s(10))).any(|at| at == 1));
        assert_eq!(pool.order("other", &ids[..1], s(10)), [0]);
        assert!(pool.order("lab", &[], s(10)).is_empty());
    }

    #[test]
    fn rests_grow_and_end_with_one_look() {
        let ids = ["a".to_owned()];
        let mut pool = Pool::default();
        assert!(pool.take_due(&ids, s(0)).is_empty(), "nothing is known of it");
        let mut now = s(0);
        for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
            pool.failed("a", error(), now);
            assert!(pool.take_due(&ids, now + s(expected) - Duration::from_millis(1)).is_empty());
            now += s(expected);
            assert_eq!(pool.take_due(&ids, now), ids);
            assert!(pool.take_due(&ids, now).is_empty(), "one look at a time");
        }
        pool.worked("a");
        assert_eq!(pool.health("a"), Some(&Health::Up));
        pool.failed("a", error(), now);
        assert_eq!(pool.take_due(&ids, now + s(1)), ids, "it begins anew");
        for _ in 0..40 {
            pool.failed("a", error(), Duration::MAX);
        }
        pool.forget("a");
        assert_eq!(pool.health("a"), None);
    }

    #[test]
    fn where_none_works_the_one_that_rested_longest_is_first() {
        let ids: Vec<String> = ["a", "b"].map(String::from).to_vec();
        let mut pool = Pool::default();
        pool.failed("a", error(), s(5));
        pool.failed("b", error(), s(0));
        assert_eq!(pool.order("lab", &ids, s(5)), [1, 0]);
    }
}
