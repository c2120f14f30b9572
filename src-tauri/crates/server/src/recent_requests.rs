//! The newest requests, for people who watch a server. Neither bodies nor queries are kept.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use contract::types::ServedRequest;
use io::{Clock, RealClock};

/// Requests that are kept, and the longest path, in characters: what fits a page.
const MAX_REQUESTS: usize = 50;
const MAX_PATH_CHARS: usize = 120;

/// The newest requests, in order.
pub struct RecentRequests {
    clock: RealClock,
    list: Mutex<RequestList>,
}

#[derive(Default)]
struct RequestList {
    next_id: u64,
    requests: VecDeque<(Duration, ServedRequest)>,
}

impl Default for RecentRequests {
    fn default() -> Self {
        Self { clock: RealClock::new(), list: Mutex::default() }
    }
}

impl RecentRequests {
    fn list(&self) -> MutexGuard<'_, RequestList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request came. Returns its id.
    pub fn begin(&self, method: &Method, path: &str) -> u64 {
        let mut list = self.list();
        let id = list.next_id;
        list.next_id += 1;
        if list.requests.len() == MAX_REQUESTS {
            list.requests.pop_front();
        }
        let request = ServedRequest {
            id,
            at_ms: self.clock.now_utc_ms(),
            method: method.as_str().chars().take(MAX_PATH_CHARS).collect(),
            path: path.chars().take(MAX_PATH_CHARS).collect(),
            status: None,
            duration_ms: 0,
        };
        list.requests.push_back((self.clock.monotonic(), request));
        id
    }

    /// Its answer begins.
    pub fn end(&self, id: u64, status: StatusCode) {
        let now = self.clock.monotonic();
        let mut list = self.list();
        if let Some((began, request)) = list.requests.iter_mut().find(|(_, request)| request.id == id) {
            request.status = Some(status.as_u16());
            let duration_ms = now.saturating_sub(*began).as_millis();
            request.duration_ms = u32::try_from(duration_ms).unwrap_or(u32::MAX);
        }
    }

    /// The latest first.
    pub fn latest(&self) -> Vec<ServedRequest> {
        self.list().requests.iter().rev().map(|(_, request)| request.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_the_latest_first() {
        let recent = RecentRequests::default();
        let first = recent.begin(&Method::GET, "/v1/models");
        let second = recent.begin(&Method::POST, &"x".repeat(500));
        recent.end(first, StatusCode::OK);
        let [latest, before] = &recent.latest()[..] else { panic!("two") };
        assert_eq!((latest.id, latest.status, latest.path.len()), (second, None, MAX_PATH_CHARS));
        assert_eq!((before.status, before.path.as_str()), (Some(200), "/v1/models"));
        for _ in 0..MAX_REQUESTS {
            recent.begin(&Method::GET, "/");
        }
        // One that is forgotten by now ends without harm.
        recent.end(second, StatusCode::OK);
        let latest = recent.latest();
        assert_eq!(latest.len(), MAX_REQUESTS);
        assert!(latest.iter().all(|request| request.path == "/"));
    }
}
