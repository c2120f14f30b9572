//! Limits the memory that a test's GPUs hold together, as their drivers' allocators report it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Reports the bytes that one GPU holds. None: it was closed.
pub(crate) type AllocatedBytes = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// A limit over several GPUs; unlimited by default.
pub(super) struct MemoryLimit {
    max_bytes: AtomicU64,
    gpus: Mutex<Vec<AllocatedBytes>>,
    peak_bytes: AtomicU64,
}

impl Default for MemoryLimit {
    fn default() -> Self {
        Self { max_bytes: AtomicU64::new(u64::MAX), gpus: Mutex::default(), peak_bytes: AtomicU64::new(0) }
    }
}

impl MemoryLimit {
    /// Sets the limit. Memory held beyond it stays allocated.
    pub fn set(&self, n_bytes: u64) {
        self.max_bytes.store(n_bytes, Ordering::Relaxed);
    }

    /// Adds a GPU to those that share the limit.
    pub fn watch(&self, gpu: AllocatedBytes) {
        self.gpus.lock().unwrap_or_else(PoisonError::into_inner).push(gpu);
    }

    /// Whether an allocation of `n_bytes` fits; if so it counts towards the peak.
    pub fn fits(&self, n_bytes: u64) -> bool {
        let mut total = n_bytes;
        self.gpus.lock().unwrap_or_else(PoisonError::into_inner).retain(|gpu| {
            let allocated = gpu();
            total += allocated.unwrap_or(0);
            allocated.is_some()
        });
        let fits = total <= self.max_bytes.load(Ordering::Relaxed);
        if fits {
            self.peak_bytes.fetch_max(total, Ordering::Relaxed);
        }
        fits
    }

    /// The largest total held at any time, in bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLimit").field("max_bytes", &self.max_bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn memory_counts_until_its_gpu_is_closed() {
        let (limit, gpu) = (MemoryLimit::default(), Arc::new(60));
        limit.set(100);
        assert!(limit.fits(100) && !limit.fits(101));
        let held = Arc::downgrade(&gpu);
        limit.watch(Box::new(move || held.upgrade().map(|n| *n)));
        limit.watch(Box::new(|| Some(10)));
        assert!(limit.fits(30) && !limit.fits(31));
        drop(gpu);
        assert!(limit.fits(90) && !limit.fits(91));
        assert_eq!(limit.peak_bytes(), 100);
    }
}
