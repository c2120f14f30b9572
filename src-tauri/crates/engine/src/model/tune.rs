//! Kernel tuning on a model's devices, for idle time.

use std::time::Duration;

use super::Model;
use crate::error::Result;

impl Model {
    /// Tunes for at most about a tenth of a second; `now` is a monotonic clock. Returns false when nothing is left to
    /// tune. Results apply when a model is next loaded with `LoadOptions::gpu_cache`.
    ///
    /// Errors: a device that failed. The next run reports it too, if it matters.
    pub fn tune(&mut self, now: &dyn Fn() -> Duration) -> Result<bool> {
        for replica in &mut self.replicas {
            if replica.executor.tune(now)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
