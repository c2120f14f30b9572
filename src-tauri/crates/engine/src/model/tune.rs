//! The search for what is fast on a model's devices, while nobody asks anything.

use std::time::Duration;

use super::Model;
use crate::error::Result;

impl Model {
    /// Looks a little further, for about a tenth of a second at most; `now` is a monotonic clock. False: nothing is left
    /// to look for. What is found counts when a model is next loaded with `LoadOptions::known`.
    ///
    /// Errors: a device that failed. The next run says so too, where that matters.
    pub fn tune(&mut self, now: &dyn Fn() -> Duration) -> Result<bool> {
        for replica in &mut self.replicas {
            if replica.executor.tune(now)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
