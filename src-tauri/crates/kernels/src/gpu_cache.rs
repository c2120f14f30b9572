//! Facts about GPUs that are expensive to determine: kernels that passed verification, tuned kernel shapes, and
//! compiled pipelines. Held in memory only; the application saves them from one start to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A GPU with one driver version and one version of the kernels. Facts under one key say nothing about another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuKey {
    /// product name
    pub name: String,
    /// graphics API: "vulkan", "metal", "dx12"
    pub api: String,
    /// name and version of the driver
    pub driver: String,
    /// version of the kernels, and the GPU features they can use
    pub kernels: String,
}

/// What is known about one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuFacts {
    /// names of the checks that passed: "product of Q4_K"
    pub passed_checks: BTreeSet<String>,
    /// a kernel that gives wrong results and has no alternative
    pub wrong_kernel: Option<String>,
    /// a kernel that gives wrong results with subgroups; `LaneReduction::SharedMemory` remains
    pub wrong_with_subgroups: Option<String>,
    /// by name of a precision, a kernel that gives wrong results in it; a safer precision remains
    pub wrong_in_precision: BTreeMap<String, String>,
    /// by name of a tuning subject, the name of the fastest shape
    pub tuned_shapes: BTreeMap<String, String>,
    /// pipelines as compiled by the driver, readable only by the same driver
    pub pipelines: Option<Arc<[u8]>>,
}

/// The facts about all GPUs. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct GpuCache(Arc<Mutex<BTreeMap<GpuKey, GpuFacts>>>);

impl GpuCache {
    /// A cache that starts with `facts`.
    pub fn new(facts: BTreeMap<GpuKey, GpuFacts>) -> Self {
        Self(Arc::new(Mutex::new(facts)))
    }

    /// The facts about one GPU; empty for an unknown one.
    pub fn get(&self, key: &GpuKey) -> GpuFacts {
        self.lock().get(key).cloned().unwrap_or_default()
    }

    /// Changes the facts about one GPU.
    pub fn update(&self, key: &GpuKey, change: impl FnOnce(&mut GpuFacts)) {
        change(self.lock().entry(key.clone()).or_default());
    }

    /// A copy of all facts.
    pub fn all(&self) -> BTreeMap<GpuKey, GpuFacts> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GpuKey, GpuFacts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares identity, not content; two empty caches are equal.
impl PartialEq for GpuCache {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.lock().is_empty() && other.lock().is_empty())
    }
}

impl Eq for GpuCache {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_driver_has_no_facts() {
        let key = |driver: &str| GpuKey {
            name: "Card X".into(),
            api: "vulkan".into(),
            driver: driver.into(),
            kernels: "1".into(),
        };
        let cache = GpuCache::default();
        let shared = cache.clone();
        cache.update(&key("1.0"), |facts| facts.wrong_kernel = Some("rope".into()));
        assert_eq!(shared.get(&key("1.0")).wrong_kernel.as_deref(), Some("rope"));
        assert_eq!(shared.get(&key("1.1")), GpuFacts::default());
        assert_eq!(shared.all().len(), 1);
        assert!(shared == cache && cache != GpuCache::default());
    }
}
