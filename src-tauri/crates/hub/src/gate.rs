//! Permission to connect: the caller allows or refuses every request, and learns how many bytes arrived.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::error::Result;

/// Purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Lists, model facts and manifests.
    Look,
    /// Files of a model.
    Fetch,
}

/// Asked before each request, including name resolution. The host has its port if it is not the usual one.
#[derive(Clone)]
pub struct Gate(Arc<GateFn>);

type GateFn = dyn Fn(&str, Purpose) -> Result<Permit> + Send + Sync;

impl Gate {
    /// `ask` refuses with an error; its code is `network.offline` if the user has switched off connections.
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

/// Permission for one request. Reports the received bytes when it is dropped.
pub struct Permit {
    received: AtomicU64,
    on_end: Option<Box<dyn FnOnce(u64) + Send + Sync>>,
}

impl Permit {
    /// `on_end` is called once, with the number of received bytes.
    pub fn new(on_end: impl FnOnce(u64) + Send + Sync + 'static) -> Self {
        Self { received: AtomicU64::new(0), on_end: Some(Box::new(on_end)) }
    }

    pub(crate) fn received(&self, n_bytes: usize) {
        self.received.fetch_add(n_bytes as u64, Relaxed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            on_end(self.received.load(Relaxed));
        }
    }
}
