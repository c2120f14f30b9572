//! Leave to connect: whoever has this crate ask says yes or no before anything goes out, and hears what it came to.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::error::Result;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// What there is: lists, facts, signed lists.
    Look,
    /// A model's files.
    Fetch,
}

/// Asked before each request, a name to be looked up included. `host` has its port, where it isn't the usual one.
#[derive(Clone)]
pub struct Gate(Arc<Ask>);

type Ask = dyn Fn(&str, Purpose) -> Result<Permit> + Send + Sync;

impl Gate {
    /// `ask` refuses with an error for people, whose code is `network.offline` where connections are not wanted.
    pub fn new(ask: impl Fn(&str, Purpose) -> Result<Permit> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    pub(crate) fn pass(&self, host: &str, purpose: Purpose) -> Result<Permit> {
        (self.0)(host, purpose)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

/// A request that was allowed. When it is dropped, whoever allowed it hears how many bytes came.
pub struct Permit {
    received: AtomicU64,
    over: Option<Box<dyn FnOnce(u64) + Send + Sync>>,
}

impl Permit {
    /// `over` is called once, with the bytes that came.
    pub fn new(over: impl FnOnce(u64) + Send + Sync + 'static) -> Self {
        Self { received: AtomicU64::new(0), over: Some(Box::new(over)) }
    }

    pub(crate) fn received(&self, n_bytes: usize) {
        self.received.fetch_add(n_bytes as u64, Relaxed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(over) = self.over.take() {
            over(self.received.load(Relaxed));
        }
    }
}
